import copy

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def evaluate(model, loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum().item()
    return correct / len(loader.dataset)


def main():
    train_loader = DataLoader(TensorDataset(torch.randn(96, 4), torch.randint(0, 2, (96,))), 16, True)
    val_loader = DataLoader(TensorDataset(torch.randn(48, 4), torch.randint(0, 2, (48,))), 16)
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    best_acc, best_wts = 0.0, copy.deepcopy(model.state_dict())
    for epoch in range(3):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
        acc = evaluate(model, val_loader)
        if acc > best_acc:
            best_acc, best_wts = acc, copy.deepcopy(model.state_dict())
    model.load_state_dict(best_wts)


if __name__ == "__main__":
    main()
