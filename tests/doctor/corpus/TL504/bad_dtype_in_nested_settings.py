"""The type of autocast is the default of settings inside of settings."""
from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass
class Mixed:
    kind: str = "cpu"
    numbers: torch.dtype = field(default=torch.float16)


@dataclass
class Settings:
    rate: float = 0.05
    widths: list = field(default_factory=lambda: [6, 12, 3])
    mixed: Mixed = field(default_factory=Mixed)


class Training:
    def __init__(self, settings=None):
        self.settings = settings or Settings()
        first, hidden, last = self.settings.widths
        self.net = nn.Sequential(nn.Linear(first, hidden), nn.Tanh(), nn.Linear(hidden, last))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=self.settings.rate)

    def update(self, x):
        mixed = self.settings.mixed
        self.optimizer.zero_grad()
        with torch.autocast(mixed.kind, dtype=mixed.numbers):
            loss = nn.functional.cross_entropy(self.net(x), x[:, :3].argmax(1))
        loss.backward()  # <- TL504
        self.optimizer.step()
        return loss.item()


torch.manual_seed(0)
training = Training()
for epoch in range(3):
    print(epoch, [training.update(x) for x in torch.randn(60, 6).split(20)])
