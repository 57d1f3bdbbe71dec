import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def train_epoch(model, loader, optimizer, criterion):
    model.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x)
    return total / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--gamma", type=float, default=0.7)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(256, 6)
    y = x[:, :2].argmax(dim=1)
    loader = DataLoader(TensorDataset(x, y), batch_size=args.batch_size, shuffle=True)
    for name in ("cosine", "step", "exponential"):
        model = nn.Linear(6, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        if name == "cosine":
            scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
        elif name == "step":
            scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=args.gamma)
        else:
            scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, args.gamma)
        for epoch in range(1, args.epochs + 1):
            loss = train_epoch(model, loader, optimizer, nn.CrossEntropyLoss())
            scheduler.step()
            print(name, epoch, loss, scheduler.get_last_lr())


if __name__ == "__main__":
    main()
