"""A batch is read while the model waits; but most of the time the loop waits for its tracker."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Files(Dataset):
    def __len__(self):
        return 70

    def __getitem__(self, index):
        time.sleep(0.001)
        return torch.full((16, 6), index / 70), torch.full((16, 1), index / 35)


def report(step, value):
    time.sleep(0.015)  # over the network
    return f"{step}: {value:.3f}"


torch.manual_seed(0)
loader = DataLoader(Files(), batch_size=None, shuffle=True)
model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, fused=True)
for step, (inputs, targets) in enumerate(loader):
    loss = nn.functional.mse_loss(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    line = report(step, loss.item())
print(line)
