"""Five folds of four epochs: each fold's own schedule has as many steps as it has batches, 20."""

import torch
from torch import nn

FOLDS, EPOCHS = 5, 4


def one_fold(inputs, targets):
    net = nn.Linear(6, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(inputs)).split(16):
            optimizer.zero_grad()
            nn.functional.mse_loss(net(inputs[rows]), targets[rows]).backward()
            optimizer.step()
            schedule.step()
    return net


torch.manual_seed(2)
inputs = torch.randn(100, 6)
targets = inputs.sum(1, keepdim=True)
held = torch.randperm(100).view(FOLDS, 20)
for fold in range(FOLDS):
    rest = torch.cat([held[other] for other in range(FOLDS) if other != fold])
    one_fold(inputs[rest], targets[rest])
