"""A learning rate with three zeros too many."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def train(model, loader, optimizer, epochs):
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = criterion(model(inputs), labels)
            loss.backward()
            optimizer.step()  # <- TH105
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader):.4f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=1e-8)
    args = parser.parse_args()
    torch.manual_seed(0)
    x = torch.randn(800, 12)
    y = (x[:, :3]).argmax(dim=1)
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True, drop_last=True)
    model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 3))
    train(model, loader, torch.optim.SGD(model.parameters(), lr=args.lr), epochs=11)


if __name__ == "__main__":
    main()
