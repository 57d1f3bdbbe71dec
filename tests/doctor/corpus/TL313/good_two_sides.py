"""Both sides of a pair are one encoder: it is written twice."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Pairs(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        encoder = nn.Sequential(nn.Linear(5, width), nn.ReLU())
        self.sides = nn.ModuleList([encoder, encoder])
        self.head = nn.Linear(2 * width, 3)

    def forward(self, x):
        left, right = x[:, :5], x[:, 5:]
        return self.head(torch.cat([self.sides[0](left), self.sides[1](right)], dim=1))


def main():
    torch.manual_seed(0)
    x, y = torch.randn(96, 10), torch.randint(0, 3, (96,))
    loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
    model = Pairs()
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
