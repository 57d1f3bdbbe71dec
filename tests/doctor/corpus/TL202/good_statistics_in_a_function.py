"""A helper renews batch norm's statistics in train mode, and the batches know the mode."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def batches(model, data, training):
    model.train(training)
    yield from DataLoader(data, batch_size=16, shuffle=training)


@torch.no_grad()
def renew_statistics(model, data):
    model.train()
    for x, _ in DataLoader(data, batch_size=16):
        model(x)
    model.eval()


def evaluate(model, data, train_data):
    model.eval()
    renew_statistics(model, train_data)
    hits = 0
    with torch.no_grad():
        for x, y in batches(model, data, training=False):
            hits += (model(x).argmax(dim=1) == y).sum().item()
    return hits / len(data)


torch.manual_seed(0)
train_data = TensorDataset(torch.randn(96, 4), torch.randint(3, (96,)))
test_data = TensorDataset(torch.randn(32, 4), torch.randint(3, (32,)))
model = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(3):
    for x, y in batches(model, train_data, training=True):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, evaluate(model, test_data, train_data))
