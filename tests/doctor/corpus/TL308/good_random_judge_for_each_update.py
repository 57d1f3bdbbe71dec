"""Each update compares the features of one more random network: none of them is to learn."""

import torch
from torch import nn


class Judge(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(6, width), nn.Tanh(), nn.Linear(width, 8))

    def forward(self, x):
        return self.features(x)


torch.manual_seed(0)
real = torch.randn(256, 6) * torch.tensor([1.0, 2.0, 0.5, 1.0, 1.5, 0.7])
generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 6))
optimizer = torch.optim.Adam(generator.parameters(), lr=3e-3)
for rows in torch.randperm(256).split(32):
    judge = Judge()
    optimizer.zero_grad()
    made = generator(torch.randn(32, 4))
    loss = (judge(made).mean(0) - judge(real[rows]).mean(0)).pow(2).sum()
    loss.backward()
    optimizer.step()
    print(loss.item())
