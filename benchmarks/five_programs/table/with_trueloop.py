import torch
from shared import Prices, houses
from torch import nn

import trueloop

EPOCHS, PATIENCE = 40, 6

torch.manual_seed(0)
numbers, towns, prices = houses(600, seed=0)
*val_columns, val_prices = houses(300, seed=1)
train = trueloop.Feed(((numbers, towns), prices), 50, shuffle=True)
val = trueloop.Feed((val_columns, val_prices), 150)
model = Prices(numbers, prices)
loss_fn = trueloop.supervised(nn.HuberLoss(delta=50.0))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, fused=True)
schedule = trueloop.schedules.plateau("loss", factor=0.3, patience=2)
step = trueloop.Step(model, optimizer, loss_fn, schedule=schedule)

early_stop = trueloop.EarlyStopping("loss", patience=PATIENCE)
for epoch in range(EPOCHS):
    for batch in train.epoch(epoch):
        step(batch)
    scores = trueloop.evaluate(model, val, loss_fn)
    step.end_epoch(scores)
    if early_stop(scores, model):
        break
early_stop.bring_back(model)
result = {"loss": early_stop.best}
