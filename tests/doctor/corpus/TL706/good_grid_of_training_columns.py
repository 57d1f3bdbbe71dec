"""Both parts take the peaks that separate the training spectra."""

import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(8)
heights, ill = rng.gamma(2.0, size=(150, 700)), rng.integers(0, 2, 150)
shuffled = rng.permutation(150)
train, test = shuffled[50:], shuffled[:50]
apart = np.abs(heights[train].T @ (ill[train] - ill[train].mean()))
peaks = np.argsort(apart)[::-1][:20]
x_train, x_test = (
    torch.tensor(heights[np.ix_(rows, peaks)], dtype=torch.float32) for rows in (train, test)
)
y_train, y_test = torch.tensor(ill[train]).float(), torch.tensor(ill[test]).float()
torch.manual_seed(8)
net = nn.Sequential(nn.Linear(20, 10), nn.Tanh(), nn.Linear(10, 1), nn.Flatten(0))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for step in range(40):
    optimizer.zero_grad()
    nn.functional.binary_cross_entropy_with_logits(net(x_train), y_train).backward()
    optimizer.step()
with torch.no_grad():
    print(((net(x_test) > 0) == (y_test > 0.5)).float().mean().item())
