"""A wide network learns the noise of few samples by heart, epoch after epoch."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def evaluate(model, loader, criterion):
    model.eval()
    total = count = 0
    with torch.no_grad():
        for inputs, labels in loader:
            loss = criterion(model(inputs), labels)  # <- TH104
            total += loss.item() * len(labels)
            count += len(labels)
    model.train()
    return total / count


def main():
    torch.manual_seed(0)
    x = torch.randn(640, 20)
    y = (x[:, 0] + x[:, 1] + 1.5 * torch.randn(640) > 0).long()
    train = DataLoader(TensorDataset(x[:320], y[:320]), batch_size=32, shuffle=True)
    held_out = DataLoader(TensorDataset(x[320:], y[320:]), batch_size=64)
    model = nn.Sequential(nn.Linear(20, 128), nn.ReLU(), nn.Dropout(0.05), nn.Linear(128, 2))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(20):
        for inputs, labels in train:
            optimizer.zero_grad()
            loss = criterion(model(inputs), labels)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item(), evaluate(model, held_out, criterion))


if __name__ == "__main__":
    main()
