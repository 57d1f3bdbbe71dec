"""The program warms up and decays its rate itself; a schedule is left over."""

import torch
from torch import nn

WARM, ALL = 4, 24
torch.manual_seed(3)
net = nn.Sequential(nn.Linear(5, 20), nn.ReLU(), nn.Linear(20, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
step = 0
for epoch in range(3):
    for inputs in torch.randn(8, 16, 5):
        if step < WARM:
            for group in optimizer.param_groups:
                group["lr"] = 0.05 * (step + 1) / WARM
        else:
            for group in optimizer.param_groups:
                group["lr"] = 0.05 * (ALL - step) / (ALL - WARM)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(inputs), inputs[:, :1])
        loss.backward()
        optimizer.step()
        step += 1
print(schedule.get_last_lr())
