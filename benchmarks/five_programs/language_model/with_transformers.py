import torch
from shared import GPT, next_token_loss, windows
from torch import nn
from torch.utils.data import StackDataset
from transformers import Trainer, TrainingArguments

UPDATES = 80


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = GPT()

    def forward(self, tokens, labels):
        logits = self.model(tokens[:, :-1])
        return {"loss": next_token_loss(logits, labels), "logits": logits}


torch.manual_seed(0)
train, val = windows(500, seed=0), windows(50, seed=1)
language_model = LanguageModel()
trainer = Trainer(
    language_model,
    TrainingArguments(
        max_steps=UPDATES,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=32,
        learning_rate=1e-2,
        lr_scheduler_type="cosine",
        weight_decay=0.1,
    ),
    train_dataset=StackDataset(tokens=train, labels=train),
    eval_dataset=StackDataset(tokens=val, labels=val),
)
trainer.train()
model, result = language_model.model, trainer.evaluate()
