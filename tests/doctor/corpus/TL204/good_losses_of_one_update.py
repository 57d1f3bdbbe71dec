"""Losses that are summed up on purpose: one backward takes them all."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(10, 32), nn.ReLU())
        self.heads = nn.ModuleDict({name: nn.Linear(32, 2) for name in ("left", "right", "both")})

    def forward(self, x):
        h = self.trunk(x)
        return {name: head(h) for name, head in self.heads.items()}


def main():
    torch.manual_seed(0)
    x = torch.randn(96, 10)
    y = torch.randint(0, 2, (96, 3))
    loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
    model = MultiTask()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(2):
        pending = []
        for step, (inputs, targets) in enumerate(loader):
            outputs = model(inputs)
            loss = 0
            for column, name in enumerate(outputs):
                loss += F.cross_entropy(outputs[name], targets[:, column])
            pending.append(loss)
            if (step + 1) % 4 == 0:  # one update for four batches
                total = torch.stack(pending).mean()
                optimizer.zero_grad()
                total.backward()
                optimizer.step()
                pending = []
                print(f"epoch {epoch} step {step}: {total.item():.4f}")


if __name__ == "__main__":
    main()
