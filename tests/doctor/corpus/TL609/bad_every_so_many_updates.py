import numpy as np
import torch
from torch import nn


class Exploration:
    def __init__(self, start=0.9, low=0.05, speed=1e-3):
        self.share = start
        self.low = low
        self.speed = speed

    def lower(self, done):
        self.share = max(self.low, self.share * np.exp(-self.speed * done))  # <- TL609


torch.manual_seed(0)
values = nn.Sequential(nn.Linear(4, 12), nn.ReLU(), nn.Linear(12, 3))
optimizer = torch.optim.SGD(values.parameters(), lr=1e-2)
exploration = Exploration()
for done in range(1, 61):
    seen, reward = torch.randn(8, 4), torch.randn(8)
    scores = values(seen)
    chosen = torch.where(
        torch.rand(8) < exploration.share, torch.randint(0, 3, (8,)), scores.argmax(1)
    )
    loss = (scores.gather(1, chosen[:, None])[:, 0] - reward).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if done % 15 == 0:
        exploration.lower(done)
