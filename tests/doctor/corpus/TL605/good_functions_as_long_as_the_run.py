"""Functions of the step: one ends with the run, the others have no end."""

import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS, WINDOW, WIDTH, WARM_UP = 4, 2, 16, 10


def cosine(optimizer, warm_up, total):
    def factor(step):
        if step < warm_up:
            return step / max(1, warm_up)
        return 0.5 * (1 + math.cos(math.pi * (step - warm_up) / max(1, total - warm_up)))

    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


def noam(step):
    step = max(step, 1)
    return WIDTH**-0.5 * min(step**-0.5, step * WARM_UP**-1.5)


def run(schedule_of):
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.randn(64, 1)), batch_size=8)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    schedule = schedule_of(optimizer, EPOCHS * len(loader) // WINDOW)
    for epoch in range(EPOCHS):
        for i, (x, y) in enumerate(loader):
            loss = nn.functional.mse_loss(model(x), y) / WINDOW
            loss.backward()
            if (i + 1) % WINDOW == 0:
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()


run(lambda optimizer, total: cosine(optimizer, 3, total))
run(lambda optimizer, total: torch.optim.lr_scheduler.LambdaLR(optimizer, noam))
run(
    lambda optimizer, total: torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: 0.5 ** (step / 200)
    )
)
run(
    lambda optimizer, total: torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / WARM_UP)
    )
)
