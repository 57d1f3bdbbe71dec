"""The function collects the learning rates beside the training, whose network it returns: the
schedule is more than three times as long as the run."""

import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, TensorDataset


def train(schedule_for, epochs):
    x = torch.rand(64, 5)
    loader = DataLoader(TensorDataset(x, x[:, :3].argmax(1)), batch_size=16, shuffle=True)
    net = nn.Linear(5, 3)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    schedule = schedule_for(optimizer)
    rates = []
    for epoch in range(epochs):
        rates.append(schedule.get_last_lr()[0])
        for inputs, classes in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(inputs), classes)
            loss.backward()
            optimizer.step()
        schedule.step()
    return net, rates


torch.manual_seed(0)
net, rates = train(lambda optimizer: CosineAnnealingLR(optimizer, T_max=50), 15)  # <- TL605
print(net.weight, rates[-1])
