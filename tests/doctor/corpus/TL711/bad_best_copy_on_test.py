"""The model of the best epoch is copied; the epochs are compared on the test data."""

import copy

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def train_one_epoch(model, loader, criterion, optimizer):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    correct = 0
    for x, y in loader:
        correct += (model(x).argmax(dim=1) == y).sum().item()
    return correct / len(loader.dataset)


def main():
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(300, 6), torch.randint(0, 2, (300,)))
    train_set, test_set = random_split(data, [200, 100])
    train_loader = DataLoader(train_set, batch_size=20, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=50)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    record, winner = 0.0, model
    for epoch in range(4):
        train_one_epoch(model, train_loader, criterion, optimizer)
        test_acc = accuracy(model, test_loader)
        if test_acc > record:
            record, winner = test_acc, copy.deepcopy(model)  # <- TL711

    print(f"test accuracy of the winner: {accuracy(winner, test_loader):.3f}")


if __name__ == "__main__":
    main()
