"""The same with Feed. What the augmentation draws is a function of seed, epoch and sample: the same
for any number of workers, and in a run that was stopped and resumed."""

import torch
from data import ImageFolder, make_folder
from torch import nn

import trueloop
from trueloop import schedules

EPOCHS = 6

torch.manual_seed(0)
train = trueloop.Feed(ImageFolder(make_folder(60, seed=0), augment=True), 16, shuffle=True)
val = trueloop.Feed(ImageFolder(make_folder(40, seed=1)), 40)
model = nn.Sequential(
    nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU(),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 2),
)  # fmt: skip
optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
step = trueloop.Step(
    model,
    optimizer,
    trueloop.supervised(nn.CrossEntropyLoss()),
    schedule=schedules.one_cycle(max_lr=2e-2),
)
accuracy = trueloop.metrics.for_task("multiclass", classes=2)
history = trueloop.fit(step, train, val, epochs=EPOCHS, metrics=accuracy)

print(f"val_accuracy {history.records[-1].scores['val_accuracy']:.4f}")
