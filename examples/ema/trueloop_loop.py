"""The same with `Step(average=...)`: inside `evaluating()` the model has the average, outside its
own weights, and a checkpoint has both."""

import torch
from data import checkerboard
from torch import nn

import trueloop

EPOCHS, DECAY = 15, 0.98

torch.manual_seed(0)
train = trueloop.Feed(checkerboard(512, seed=0, flipped=0.15), 32, shuffle=True)
val = trueloop.Feed(checkerboard(512, seed=1), 256)
model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
loss_fn = trueloop.supervised(nn.CrossEntropyLoss())
optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
step = trueloop.Step(model, optimizer, loss_fn, average=trueloop.EMA(DECAY))
accuracy = trueloop.metrics.for_task("multiclass", classes=2)

for epoch in range(EPOCHS):
    for batch in train.epoch(epoch):
        step(batch)
    with step.evaluating():
        scores = trueloop.evaluate(model, val, loss_fn, accuracy)

step.eval_weights()
print(f"val_loss {scores['loss']:.4f}  val_accuracy {scores['accuracy']:.4f}")
