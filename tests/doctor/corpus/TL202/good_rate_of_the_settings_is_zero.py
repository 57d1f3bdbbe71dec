"""The only settings leave the dropout out."""

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        layers = [nn.Linear(4, 8), nn.ReLU()]
        if dropout > 0:
            layers.append(nn.Dropout(dropout))
        self.layers = nn.Sequential(*layers, nn.Linear(8, 1))

    def forward(self, x):
        return self.layers(x)


def train(settings):
    torch.manual_seed(0)
    inputs, targets = torch.randn(64, 4), torch.randn(64, 1)
    model = Net(dropout=settings["dropout"])
    optimizer = torch.optim.SGD(model.parameters(), lr=settings["lr"])
    for epoch in range(3):
        for x, y in zip(inputs.split(16), targets.split(16)):
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
        val_loss = 0.0
        with torch.no_grad():
            for x_val, y_val in zip(inputs.split(16), targets.split(16)):
                val_loss += F.mse_loss(model(x_val), y_val).item()
        print(val_loss)


def search(function, settings):
    for lr in (0.1, 0.01):
        function({**settings, "lr": lr})


search(train, {"dropout": 0.0, "epochs": 3})
