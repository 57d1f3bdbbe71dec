"""Functions and steps that count updates, to the end of the run; and an epoch's own count."""

import torch
from torch import nn
from torch.optim.lr_scheduler import ExponentialLR, LambdaLR, StepLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(40, 3), torch.randn(40, 1))
loader = DataLoader(data, batch_size=4, shuffle=True)
epochs = 6
total = epochs * len(loader)


def train(make, per_batch):
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    schedule = make(optimizer)
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
            if per_batch:
                schedule.step()
        if not per_batch:
            schedule.step()


train(lambda o: LambdaLR(o, lambda s: min((s + 1) / 10, (total - s) / (total - 10))), True)
train(lambda o: LambdaLR(o, lambda e: 1 - e / epochs), False)
train(lambda o: ExponentialLR(o, 0.95), True)
train(lambda o: StepLR(o, step_size=15, gamma=0.1), True)
train(lambda o: StepLR(o, step_size=2, gamma=0.1), False)
