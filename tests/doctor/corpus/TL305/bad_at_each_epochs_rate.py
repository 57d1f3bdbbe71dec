"""A lower rate for each epoch comes with an optimizer that has forgotten its momentum."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

config = {"epochs": 4, "lr": 0.1}


def optimizer_at(model, epoch):
    rate = config["lr"] / (1 + epoch)
    return torch.optim.SGD(model.parameters(), rate, momentum=0.9)  # <- TL305


def train_model(model, loader):
    for epoch in range(config["epochs"]):
        optimizer = optimizer_at(model, epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


torch.manual_seed(0)
data = TensorDataset(torch.randn(64, 4), torch.randint(2, (64,)))
train_model(nn.Linear(4, 2), DataLoader(data, batch_size=16, shuffle=True))
