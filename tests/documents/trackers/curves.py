import csv

import torch
from torch import nn

import trueloop

torch.manual_seed(0)
model = nn.Linear(3, 1)
inputs = torch.randn(16, 3)
train = trueloop.Feed((inputs, inputs.sum(1, keepdim=True)), 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
step = trueloop.Step(model, optimizer, trueloop.supervised(nn.MSELoss()))

with trueloop.trackers.CSV("curves") as tracker:
    trueloop.fit(step, train, epochs=2, sinks=[tracker], progress=False)

print("update  epoch  samples  loss")
with open("curves/updates.csv") as file:
    for row in csv.DictReader(file):
        print(f"{row['update']:>6}{row['epoch']:>7}{row['samples']:>9}  {float(row['loss']):.2f}")
