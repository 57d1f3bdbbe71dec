"""Of the two tensors only the targets tell how many samples there are: 300, in batches of 20."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EVERY = 4


def signals(count, points):
    rate = 1 + 3 * torch.rand(count)
    time = torch.linspace(0, 1, points)
    return torch.stack([torch.sin(time * r) for r in rate]), rate


def train(net, loader, optimizer, epochs):
    for epoch in range(epochs):
        optimizer.zero_grad()
        for number, (wave, rate) in enumerate(loader, 1):
            loss = F.smooth_l1_loss(net(wave).squeeze(1), rate)
            (loss / EVERY).backward()
            if number % EVERY == 0:
                optimizer.step()  # <- TL506
                optimizer.zero_grad()
        print(epoch, loss.item())


torch.manual_seed(1)
loader = DataLoader(TensorDataset(*signals(300, 24)), batch_size=20, shuffle=True)
net = nn.Sequential(nn.Linear(24, 16), nn.ReLU(), nn.Linear(16, 1))
train(net, loader, torch.optim.SGD(net.parameters(), lr=0.05), 3)
