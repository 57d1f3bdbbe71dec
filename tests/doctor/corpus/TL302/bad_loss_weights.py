"""The loss has weights of its own to learn, which no optimizer was told of."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class UncertaintyLoss(nn.Module):
    def __init__(self, tasks):
        super().__init__()
        self.log_variance = nn.Parameter(torch.zeros(tasks))

    def forward(self, losses):
        losses = torch.stack(losses)
        return (losses * torch.exp(-self.log_variance) + self.log_variance).sum()


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(8, 32), nn.Tanh())
        self.depth = nn.Linear(32, 1)
        self.kind = nn.Linear(32, 3)

    def forward(self, x):
        features = self.trunk(x)
        return self.depth(features), self.kind(features)


class Trainer:
    def __init__(self, lr=1e-2):
        self.net = TwoHeads()
        self.combine = UncertaintyLoss(tasks=2)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=lr, momentum=0.9)  # <- TL302

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            for x, depth, kind in loader:
                guessed, scores = self.net(x)
                loss = self.combine([F.mse_loss(guessed, depth), F.cross_entropy(scores, kind)])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            print(epoch, loss.item())


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(96, 8)
    dataset = TensorDataset(x, x.sum(1, keepdim=True), torch.randint(0, 3, (96,)))
    Trainer().fit(DataLoader(dataset, batch_size=16, shuffle=True), epochs=2)
