import torch
from shared import ConvNet, textures
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import StackDataset
from transformers import Trainer, TrainingArguments

EPOCHS, ACCUMULATE = 8, 2


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = ConvNet()

    def forward(self, images, labels):
        logits = self.model(images)
        return {"loss": cross_entropy(logits, labels), "logits": logits}


def accuracy(predictions):
    right = predictions.predictions.argmax(axis=1) == predictions.label_ids
    return {"accuracy": right.mean()}


torch.manual_seed(0)
train_images, train_labels = textures(512, seed=0)
val_images, val_labels = textures(256, seed=1)
classifier = Classifier()
trainer = Trainer(
    classifier,
    TrainingArguments(
        num_train_epochs=EPOCHS,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=128,
        gradient_accumulation_steps=ACCUMULATE,
        learning_rate=1e-2,
        lr_scheduler_type="cosine",
        bf16=True,
        use_cpu=True,
        eval_strategy="epoch",
    ),
    train_dataset=StackDataset(images=train_images, labels=train_labels),
    eval_dataset=StackDataset(images=val_images, labels=val_labels),
    compute_metrics=accuracy,
)
trainer.train()
model, result = classifier.model, trainer.evaluate()
