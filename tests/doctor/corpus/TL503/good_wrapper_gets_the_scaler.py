"""The schedule's wrapper steps through the scaler that each call hands to it."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Warmed:
    def __init__(self, network, width, warm_up):
        self.inner = torch.optim.Adam(network.parameters(), betas=(0.9, 0.98), eps=1e-9)
        self.width, self.warm_up, self.count = width, warm_up, 0

    def step_and_update_lr(self, scaler):
        self.count += 1
        rate = self.width**-0.5 * min(self.count**-0.5, self.count * self.warm_up**-1.5)
        for group in self.inner.param_groups:
            group["lr"] = rate
        scaler.step(self.inner)
        return rate

    def zero_grad(self):
        self.inner.zero_grad()


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(96, 6), torch.randn(96, 1)), 12, shuffle=True)
network = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = Warmed(network, 16, 20)
scaler = torch.amp.GradScaler("cpu")
for epoch in range(3):
    for x, y in loader:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.mse_loss(network(x), y)
        scaler.scale(loss).backward()
        rate = optimizer.step_and_update_lr(scaler)
        scaler.update()
        optimizer.zero_grad()
