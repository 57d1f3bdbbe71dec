"""What programs of every page may take for granted."""

import torch
from torch import nn

import trueloop
from trueloop import Checkpoints, Feed, Step, evaluate, lora, optimizers, schedules

torch.manual_seed(0)
inputs, targets = torch.randn(64, 4), torch.randint(0, 3, (64,))
val_inputs, val_targets = inputs, targets
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
loss_fn = trueloop.supervised(nn.CrossEntropyLoss())
metrics = trueloop.metrics.for_task("multiclass", classes=3)
train, val = Feed((inputs, targets), 16, shuffle=True), Feed((inputs, targets), 64)
step = Step(model, optimizer, loss_fn)
folder, epochs = "checkpoints", 2
REPLACED: dict[str, str] = {}
"""Numbers of a page that would take too long here."""
