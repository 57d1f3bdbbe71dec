"""The same with `fit`: EarlyStopping brings back the best weights, and metrics have names."""

import torch
from data import Network, houses
from torch import nn

import trueloop
from trueloop import schedules

EPOCHS, PATIENCE = 40, 6

torch.manual_seed(0)
columns, prices = houses(600, seed=0)
val_columns, val_prices = houses(300, seed=1)
train = trueloop.Feed((columns, prices), 50, shuffle=True)
val = trueloop.Feed((val_columns, val_prices), 150)
model = Network(columns, prices)
loss_fn = trueloop.supervised(nn.HuberLoss(delta=50.0))
step = trueloop.Step(
    model,
    torch.optim.Adam(model.parameters(), lr=1e-2),
    loss_fn,
    schedule=schedules.plateau("val_loss", factor=0.3, patience=2),
)
early_stop = trueloop.EarlyStopping("val_loss", patience=PATIENCE)
history = trueloop.fit(step, train, val, epochs=EPOCHS, early_stop=early_stop)

regression = trueloop.metrics.for_task("regression")
scores = trueloop.evaluate(model, val, loss_fn, regression)
print(f"val_loss {history.best:.4f}  val_mae {scores['mae']:.3f}")
