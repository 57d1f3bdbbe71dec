import torch
from shared import pretrained, textures
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import StackDataset
from transformers import Trainer, TrainingArguments

EPOCHS = 5


class FineTuned(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = pretrained()
        self.model.stem.requires_grad_(False)
        self.model.head.reset_parameters()

    def forward(self, images, labels):
        logits = self.model(images)
        return {"loss": cross_entropy(logits, labels), "logits": logits}

    def train(self, mode=True):
        super().train(mode)
        self.model.stem.eval()
        return self


def accuracy(predictions):
    right = predictions.predictions.argmax(axis=1) == predictions.label_ids
    return {"accuracy": right.mean()}


torch.manual_seed(0)
train_images, train_labels = textures(256, seed=0)
val_images, val_labels = textures(256, seed=1)
fine_tuned = FineTuned()
groups = [
    {"params": fine_tuned.model.body.parameters(), "lr": 1e-3},
    {"params": fine_tuned.model.head.parameters(), "lr": 1e-2},
]
optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
trainer = Trainer(
    fine_tuned,
    TrainingArguments(
        num_train_epochs=EPOCHS,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=128,
        lr_scheduler_type="constant",
        max_grad_norm=0.0,
        eval_strategy="epoch",
    ),
    train_dataset=StackDataset(images=train_images, labels=train_labels),
    eval_dataset=StackDataset(images=val_images, labels=val_labels),
    compute_metrics=accuracy,
    optimizers=(optimizer, None),
)
trainer.train()
model, result = fine_tuned.model, trainer.evaluate()
