"""400 samples of 24 points in batches of 20: the number of points is not that of the samples."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EVERY = 4


def signals(count, points):
    rate = 1 + 3 * torch.rand(count, 1)
    time = torch.linspace(0, 1, steps=points)
    wave = torch.sin(time * rate)
    return wave + 0.1 * torch.randn_like(wave), rate.squeeze(1)


torch.manual_seed(1)
loader = DataLoader(TensorDataset(*signals(400, 24)), batch_size=20, shuffle=True)
net = nn.Sequential(nn.Linear(24, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for epoch in range(3):
    optimizer.zero_grad()
    for number, (wave, rate) in enumerate(loader, 1):
        loss = F.smooth_l1_loss(net(wave).squeeze(1), rate)
        (loss / EVERY).backward()
        if number % EVERY == 0:
            optimizer.step()
            optimizer.zero_grad()
    print(epoch, loss.item())
