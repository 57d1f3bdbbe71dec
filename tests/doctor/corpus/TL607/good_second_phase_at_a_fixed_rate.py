"""The schedule ends with the first phase; later the two optimizers take turns, and it goes on."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def one_epoch(model, loader, optimizer, schedule=None):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    if schedule is not None:
        schedule.step()


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(96, 5), torch.randn(96, 1)), 16, shuffle=True)
model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1))
warm = torch.optim.SGD(model[2].parameters(), lr=0.1)
decay = torch.optim.lr_scheduler.ExponentialLR(warm, gamma=0.8)
for _ in range(3):
    one_epoch(model, loader, warm, decay)
fine = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(4):
    one_epoch(model, loader, fine)
for _ in range(3):
    one_epoch(model, loader, fine)
    one_epoch(model, loader, warm, decay)
