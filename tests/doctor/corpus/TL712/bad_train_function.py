import argparse

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def train(args, model, train_loader, optimizer, epoch):
    torch.manual_seed(args.seed)  # <- TL712
    model.train()
    for batch_idx, (data, target) in enumerate(train_loader):
        optimizer.zero_grad()
        output = model(data)
        loss = F.cross_entropy(output, target)
        loss.backward()
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            print(f"Train epoch {epoch} [{batch_idx}/{len(train_loader)}] {loss.item():.4f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log-interval", type=int, default=10)
    args = parser.parse_args()

    train_loader = DataLoader(
        TensorDataset(torch.randn(64, 10), torch.randint(0, 5, (64,))), batch_size=16, shuffle=True
    )
    model = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Dropout(0.25), nn.Linear(20, 5))
    optimizer = optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
    for epoch in range(1, args.epochs + 1):
        train(args, model, train_loader, optimizer, epoch)


if __name__ == "__main__":
    main()
