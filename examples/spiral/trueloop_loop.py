"""The same loop with Step, Feed and evaluate: yours to own, with every line in the right place."""

import torch
from data import spiral
from torch import nn

import trueloop
from trueloop import optimizers, schedules

EPOCHS = 16

torch.manual_seed(0)
train = trueloop.Feed(spiral(2000, seed=0), 64, shuffle=True)
val = trueloop.Feed(spiral(1000, seed=1), 256)
model = nn.Sequential(
    nn.Linear(2, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 3)
)
loss_fn = trueloop.supervised(nn.CrossEntropyLoss())
accuracy = trueloop.metrics.for_task("multiclass", classes=3)
step = trueloop.Step(
    model, optimizers.adam(model, lr=3e-3), loss_fn, schedule=schedules.cosine(), clip_norm=1.0
)
step.plan(epochs=EPOCHS, batches=len(train))

for epoch in range(EPOCHS):
    for batch in train.epoch(epoch):
        record = step(batch)
    scores = trueloop.evaluate(model, val, loss_fn, accuracy)
    step.end_epoch(scores)

print(f"val_loss {scores['loss']:.4f}  val_accuracy {scores['accuracy']:.4f}")
