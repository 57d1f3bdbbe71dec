"""A function builds the blocks for a class that takes any list of them: one block to a stack."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Residual(nn.Module):
    def __init__(self, blocks, width=16):
        super().__init__()
        self.stem = nn.Linear(10, width)
        self.blocks = blocks
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = x - block(x)
        return self.head(x)


def interpretable(width=16, count=3):
    trend = nn.Sequential(nn.Linear(width, width), nn.ReLU())
    seasons = nn.Sequential(nn.Linear(width, width), nn.Tanh())
    return Residual(nn.ModuleList([trend for _ in range(count)] + [seasons for _ in range(count)]))


def main():
    torch.manual_seed(0)
    x, y = torch.randn(96, 10), torch.randint(0, 3, (96,))
    loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
    model = interpretable()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(2):
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
