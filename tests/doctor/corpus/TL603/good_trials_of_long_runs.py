"""A few epochs of a run that is meant to be longer: a warm-up over 40 epochs, a step after 100; and
functions of the epoch."""

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR, StepLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(80, 3), torch.randn(80, 1))
loader = DataLoader(data, batch_size=4, shuffle=True)


def train(make, epochs=6):
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    schedule = make(optimizer)
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        schedule.step()


train(lambda o: LambdaLR(o, lambda epoch: min(1.0, (epoch + 1) / 40)))
train(lambda o: StepLR(o, step_size=100))
train(lambda o: LambdaLR(o, lambda epoch: 0.9**epoch))
train(lambda o: LambdaLR(o, lambda epoch: min(1.0, (epoch + 1) / 4)))
