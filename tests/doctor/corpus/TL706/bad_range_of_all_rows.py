import numpy as np
import torch
from torch import nn


def squeeze(values):
    low, high = values.min(axis=0), values.max(axis=0)
    return (values - low) / (high - low + 1e-8)  # <- TL706


table = np.random.default_rng(3).normal(size=(150, 4)).astype("float32")
target = table[:, :1] * 2
table = squeeze(table)
x_train, x_test = torch.from_numpy(table[:120]), torch.from_numpy(table[120:])
y_train, y_test = torch.from_numpy(target[:120]), torch.from_numpy(target[120:])
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(net.parameters())
for epoch in range(5):
    optimizer.zero_grad()
    nn.functional.mse_loss(net(x_train), y_train).backward()
    optimizer.step()
with torch.no_grad():
    print(nn.functional.mse_loss(net(x_test), y_test).item())
