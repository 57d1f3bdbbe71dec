import torch
from torch import nn

import trueloop
from trueloop import optimizers, schedules

torch.manual_seed(0)
inputs = torch.randn(1000, 8)
targets = inputs[:, :3].argmax(dim=1)

train = trueloop.Feed((inputs[:800], targets[:800]), 64, shuffle=True, seed=0)
val = trueloop.Feed((inputs[800:], targets[800:]), 256)
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 3))
step = trueloop.Step(
    model,
    optimizers.adamw(model, lr=1e-2),
    trueloop.supervised(nn.CrossEntropyLoss()),
    schedule=schedules.warmup_cosine("5%"),
    clip_norm=1.0,
)
history = trueloop.fit(
    step,
    train,
    val,
    epochs=3,
    metrics=trueloop.metrics.for_task("multiclass", classes=3),
    checkpoints=trueloop.Checkpoints("checkpoints"),
)
print(f"best validation loss {history.best:.3f} after epoch {history.best_epoch + 1}")
