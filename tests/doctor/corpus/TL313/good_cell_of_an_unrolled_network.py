"""The steps of an unrolled solver are one cell."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Unrolled(nn.Module):
    def __init__(self, width=16, steps=3):
        super().__init__()
        self.stem = nn.Linear(10, width)
        cell = nn.Linear(width, width)
        self.cells = nn.ModuleList([cell for _ in range(steps)])
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        x = self.stem(x)
        for cell in self.cells:
            x = torch.tanh(cell(x))
        return self.head(x)


def main():
    torch.manual_seed(0)
    x, y = torch.randn(96, 10), torch.randint(0, 3, (96,))
    loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
    model = Unrolled()
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
