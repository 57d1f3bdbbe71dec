"""A cycle that should end at a small rate, which nobody steps."""

import torch
from torch import nn


def schedule_of(optimizer, settings):
    return torch.optim.lr_scheduler.OneCycleLR(  # <- TL606
        optimizer,
        max_lr=settings.get("max_lr", 2e-3),
        epochs=settings.get("epochs", 200),
        steps_per_epoch=settings.get("steps_per_epoch", 1000),
        pct_start=settings.get("pct_start", 0.0),
        div_factor=1,
        final_div_factor=100,
    )


torch.manual_seed(0)
net = nn.Linear(4, 1)
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
schedule = schedule_of(optimizer, {"epochs": 2})
for step in range(200):
    x = torch.randn(8, 4)
    loss = (net(x) - x.sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(loss.item(), optimizer.param_groups[0]["lr"])
