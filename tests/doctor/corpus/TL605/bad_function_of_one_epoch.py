"""A linear decay by a function, to the end of the first epoch; after it the rate is negative."""

import torch
import torch.nn as nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, loader):
        self.loader = loader
        self.model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        steps = len(loader)
        self.schedule = LambdaLR(self.optimizer, lambda step: 1.0 - step / steps)  # <- TL605

    def fit(self, patience=9):
        worst = 0
        for epoch in range(4):
            total = sum(self.step(*batch) for batch in self.loader)
            worst = worst + 1 if total > 1e6 else 0
            if worst > patience:
                break
            print(epoch, total)

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = nn.functional.mse_loss(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
        return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(100, 3), torch.randn(100, 1))
    Trainer(DataLoader(data, batch_size=4, shuffle=True)).fit()
