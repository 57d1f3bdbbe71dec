"""A helper prepares model and loader for a pass, always for training."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def loader_for(model, data, shuffle):
    model.train()  # <- TL202
    return DataLoader(data, batch_size=16, shuffle=shuffle)


def evaluate(model, data):
    model.eval()
    hits = 0
    with torch.no_grad():
        for x, y in loader_for(model, data, shuffle=False):
            hits += (model(x).argmax(dim=1) == y).sum().item()
    return hits / len(data)


torch.manual_seed(0)
train_data = TensorDataset(torch.randn(96, 4), torch.randint(3, (96,)))
test_data = TensorDataset(torch.randn(32, 4), torch.randint(3, (32,)))
model = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(3):
    for x, y in loader_for(model, train_data, shuffle=True):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, evaluate(model, test_data))
