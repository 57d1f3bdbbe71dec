"""The head is trained first; then everything, with a new optimizer and the old schedule."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(8, 32), nn.ReLU())
        self.head = nn.Linear(32, 3)

    def forward(self, x):
        return self.head(self.backbone(x))


def run_epoch(model, loader, optimizer):
    model.train()
    total, seen = 0.0, 0
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
        seen += len(y)
    return total / seen


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(192, 8)
    y = x[:, :3].argmax(dim=1)
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    model = Classifier()

    model.backbone.requires_grad_(False)
    optimizer = torch.optim.Adam(model.head.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)  # <- TL607
    for epoch in range(2):
        print("head", epoch, run_epoch(model, loader, optimizer))

    model.backbone.requires_grad_(True)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(6):
        loss = run_epoch(model, loader, optimizer)
        scheduler.step()
        print("all", epoch, loss, optimizer.param_groups[0]["lr"])


if __name__ == "__main__":
    main()
