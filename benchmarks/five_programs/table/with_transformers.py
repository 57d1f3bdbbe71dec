import torch
from shared import Prices, houses
from torch import nn
from torch.nn.functional import huber_loss
from torch.utils.data import StackDataset
from transformers import EarlyStoppingCallback, Trainer, TrainingArguments

EPOCHS, PATIENCE = 40, 6


class Regression(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, numbers, town, labels):
        outputs = self.model(numbers, town)
        return {"loss": huber_loss(outputs, labels, delta=50.0), "outputs": outputs}


torch.manual_seed(0)
numbers, towns, prices = houses(600, seed=0)
val_numbers, val_towns, val_prices = houses(300, seed=1)
model = Prices(numbers, prices)
trainer = Trainer(
    Regression(model),
    TrainingArguments(
        num_train_epochs=EPOCHS,
        per_device_train_batch_size=50,
        per_device_eval_batch_size=150,
        learning_rate=1e-2,
        lr_scheduler_type="reduce_lr_on_plateau",
        lr_scheduler_kwargs={"factor": 0.3, "patience": 2},
        max_grad_norm=0.0,
        eval_strategy="epoch",
        save_strategy="epoch",
        load_best_model_at_end=True,
        metric_for_best_model="loss",
    ),
    train_dataset=StackDataset(numbers=numbers, town=towns, labels=prices),
    eval_dataset=StackDataset(numbers=val_numbers, town=val_towns, labels=val_prices),
    callbacks=[EarlyStoppingCallback(early_stopping_patience=PATIENCE)],
)
trainer.train()
result = trainer.evaluate()
