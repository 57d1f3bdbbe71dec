"""The total of a warm-up and cosine counts micro-batches; it steps once per accumulated update."""

import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def warm_up_and_cosine(optimizer, warm_up_steps, total_steps, floor=0.05):
    def factor(current):
        if current < warm_up_steps:
            return float(current) / float(max(1, warm_up_steps))
        done = float(current - warm_up_steps) / float(max(1, total_steps - warm_up_steps))
        return max(floor, 0.5 * (1.0 + math.cos(math.pi * min(1.0, done))))

    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


torch.manual_seed(0)
EPOCHS, WINDOW = 6, 4
loader = DataLoader(TensorDataset(torch.randn(256, 6), torch.randn(256, 1)), batch_size=8)
model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
schedule = warm_up_and_cosine(optimizer, 4, EPOCHS * len(loader))  # <- TL605
for epoch in range(EPOCHS):
    for i, (x, y) in enumerate(loader):
        loss = nn.functional.mse_loss(model(x), y) / WINDOW
        loss.backward()
        if (i + 1) % WINDOW == 0:
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
