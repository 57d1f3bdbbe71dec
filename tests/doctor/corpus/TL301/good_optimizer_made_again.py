"""Two phases: another head for the second, and another optimizer with it."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def fit(model, optimizer, loader, epochs):
    model.train()
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
    return loss.item()


class Network(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(8, 32), nn.ReLU())
        self.head = nn.Linear(32, classes)

    def forward(self, x):
        return self.head(self.encoder(x))


def main():
    torch.manual_seed(0)
    x = torch.randn(96, 8)
    coarse = DataLoader(TensorDataset(x, torch.randint(0, 2, (96,))), batch_size=16, shuffle=True)
    fine = DataLoader(TensorDataset(x, torch.randint(0, 6, (96,))), batch_size=16, shuffle=True)
    model = Network(classes=2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    print("coarse:", fit(model, optimizer, coarse, epochs=2))
    model.head = nn.Linear(32, 6)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    print("fine:", fit(model, optimizer, fine, epochs=2))


if __name__ == "__main__":
    main()
