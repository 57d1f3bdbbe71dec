"""An early stopping that keeps the best weights, in a run of many improvements."""

import torch
from torch import nn


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.best, self.bad = patience, float("inf"), 0
        self.weights = None

    def __call__(self, loss, model):
        if loss < self.best:
            self.best, self.bad = loss, 0
            self.weights = model.state_dict()  # <- TL805
        else:
            self.bad += 1
        return self.bad > self.patience


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
x = torch.randn(64, 2)
y = x.prod(1, keepdim=True)
stop = EarlyStopping(patience=3)
for epoch in range(24):
    net.train()
    for rows in torch.randperm(48).split(8):
        optimizer.zero_grad()
        nn.functional.mse_loss(net(x[rows]), y[rows]).backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        loss = nn.functional.mse_loss(net(x[48:]), y[48:]).item()
    if stop(loss if epoch < 21 else 9.0, net):
        break
net.load_state_dict(stop.weights)
