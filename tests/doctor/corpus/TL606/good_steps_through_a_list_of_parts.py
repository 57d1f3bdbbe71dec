"""Whatever has a schedule steps it: the parts are gone through without their names."""

import torch
from torch import nn
from torch.optim.lr_scheduler import LRScheduler, StepLR


def parts(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return {"model": model, "optimizer": optimizer, "scheduler": StepLR(optimizer, 1)}


torch.manual_seed(0)
kept = parts(nn.Linear(3, 1))
for epoch in range(3):
    for _ in range(4):
        x = torch.randn(4, 3)
        kept["optimizer"].zero_grad()
        nn.functional.mse_loss(kept["model"](x), x.sum(1, keepdim=True)).backward()
        kept["optimizer"].step()
    for part in kept.values():
        if isinstance(part, LRScheduler):
            part.step()
