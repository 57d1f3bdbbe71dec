"""The many ways to turn recording off."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x, y = torch.randn(96, 6), torch.randint(0, 2, (96,))
train_loader = DataLoader(TensorDataset(x[:64], y[:64]), batch_size=16, shuffle=True)
val_loader = DataLoader(TensorDataset(x[64:], y[64:]), batch_size=16)
model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Dropout(0.1), nn.Linear(12, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters())


@torch.no_grad()
def val_accuracy():
    model.eval()
    hits = sum((model(a).argmax(1) == b).sum().item() for a, b in val_loader)
    return hits / len(val_loader.dataset)


@torch.inference_mode()
def val_confidence():
    model.eval()
    total = 0.0
    for a, _ in val_loader:
        total += model(a).softmax(-1).amax(-1).sum().item()
    return total / len(val_loader.dataset)


def run(loader, train):
    model.train(train)
    total = 0.0
    with torch.set_grad_enabled(train):
        for a, b in loader:
            loss = criterion(model(a), b)
            if train:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(a)
    return total / len(loader.dataset)


for epoch in range(2):
    print("train", run(train_loader, True), "val", run(val_loader, False))
    print(val_accuracy(), val_confidence())
    torch.set_grad_enabled(False)
    model.eval()
    for a, b in val_loader:
        margin = model(a).diff(dim=1).abs().mean()
    torch.set_grad_enabled(True)
    print("margin of the last batch:", margin.item())
