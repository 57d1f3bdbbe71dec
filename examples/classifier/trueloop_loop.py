"""The same with `fit`: accumulation, bf16, clipping and the warm-up are named, not written."""

import torch
from data import textures
from torch import nn

import trueloop
from trueloop import schedules

EPOCHS, ACCUMULATE = 8, 2

torch.manual_seed(0)
train = trueloop.Feed(textures(512, seed=0), 32, shuffle=True)
val = trueloop.Feed(textures(256, seed=1), 128)
model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
    nn.Flatten(), nn.Dropout(0.1), nn.Linear(32, 4),
)  # fmt: skip
step = trueloop.Step(
    model,
    torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.01),
    trueloop.supervised(nn.CrossEntropyLoss(label_smoothing=0.1)),
    schedule=schedules.warmup_cosine("12.5%"),
    precision="bf16",
    accumulate=ACCUMULATE,
    clip_norm=1.0,
)
accuracy = trueloop.metrics.for_task("multiclass", classes=4)
history = trueloop.fit(step, train, val, epochs=EPOCHS, metrics=accuracy)

scores = history.records[-1].scores
print(f"val_loss {scores['val_loss']:.4f}  val_accuracy {scores['val_accuracy']:.4f}")
