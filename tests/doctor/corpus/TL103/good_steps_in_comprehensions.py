"""Each comprehension is a pass over the data: one trains, one only looks."""

import torch
from torch import nn

torch.manual_seed(7)
train = [torch.randn(16, 6) for _ in range(6)]
held_out = [torch.randn(16, 6) for _ in range(3)]
model = nn.Linear(6, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2)


def error(x):
    return nn.functional.mse_loss(model(x), x[:, :1])


def update(x):
    optimizer.zero_grad()
    loss = error(x)
    loss.backward()
    optimizer.step()
    return loss.item()


for epoch in range(4):
    losses = [update(x) for x in train]
    with torch.no_grad():
        scores = [error(x).item() for x in held_out]
    schedule.step()
    print(sum(losses) / len(losses), sum(scores) / len(scores))
