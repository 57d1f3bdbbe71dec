"""The test loss is printed each epoch; the validation loss decides."""
import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def loader(n, shuffle=False):
    x = torch.randn(n, 3)
    return DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=20, shuffle=shuffle)


def mean_loss(model, data):
    model.eval()
    with torch.no_grad():
        total = sum(nn.functional.mse_loss(model(x), y, reduction="sum").item() for x, y in data)
    return total / len(data.dataset)


train_loader, val_loader, test_loader = loader(100, True), loader(40), loader(40)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
best, weights = float("inf"), copy.deepcopy(model.state_dict())
for epoch in range(4):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    val_loss, test_loss = mean_loss(model, val_loader), mean_loss(model, test_loader)
    print(f"{epoch}: val {val_loss:.3f} test {test_loss:.3f}")
    if val_loss < best:
        best, weights = val_loss, copy.deepcopy(model.state_dict())
model.load_state_dict(weights)
print("test", mean_loss(model, test_loader))
