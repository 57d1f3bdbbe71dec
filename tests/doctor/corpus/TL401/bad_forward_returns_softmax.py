"""Small MLP on toy digits."""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, hidden=32, num_classes=10):
        super().__init__()
        self.fc1 = nn.Linear(64, hidden)
        self.drop = nn.Dropout(0.1)
        self.fc2 = nn.Linear(hidden, num_classes)

    def forward(self, x):
        x = torch.flatten(x, 1)
        x = self.drop(F.relu(self.fc1(x)))
        x = self.fc2(x)
        return F.softmax(x, dim=1)


def train(args, model, loader, optimizer, epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(loader):
        optimizer.zero_grad()
        output = model(data)
        loss = F.cross_entropy(output, target)  # <- TL401
        loss.backward()
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            print(f"Train Epoch: {epoch} [{batch_idx}/{len(loader)}]\tLoss: {loss.item():.6f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--log-interval", type=int, default=4)
    args = parser.parse_args()

    torch.manual_seed(1)
    torch.set_num_threads(1)
    prototypes = torch.rand(10, 8, 8)
    target = torch.randint(0, 10, (320,))
    data = prototypes[target] + 0.3 * torch.randn(320, 8, 8)
    loader = DataLoader(TensorDataset(data, target), batch_size=32, shuffle=True)

    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(1, args.epochs + 1):
        train(args, model, loader, optimizer, epoch)


if __name__ == "__main__":
    main()
