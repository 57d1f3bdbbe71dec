import tempfile
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 3)

    def forward(self, x):
        return self.fc(x)


class Checkpointer:
    def __init__(self, folder):
        self.folder = Path(folder)
        self.best = float("inf")

    def __call__(self, model, loss, epoch):
        if loss < self.best:
            self.best = loss
            torch.save({"epoch": epoch, "loss": loss, "model": model}, self.folder / "best.pt")  # <- TL803


def main():
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    x, y = torch.randn(30, 6), torch.randint(0, 3, (30,))
    with tempfile.TemporaryDirectory() as folder:
        checkpointer = Checkpointer(folder)
        for epoch in range(3):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            checkpointer(model, loss.item(), epoch)


if __name__ == "__main__":
    main()
