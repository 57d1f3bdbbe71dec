"""What the settings inside of settings say is a default that a file may replace."""
import json
import sys
from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass
class Mixed:
    kind: str = "cpu"
    numbers: torch.dtype = torch.float16


@dataclass
class Settings:
    rate: float = 0.05
    mixed: Mixed = field(default_factory=Mixed)


settings = Settings()
loaded = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {"mixed": Mixed("cpu", torch.bfloat16)}
settings.__dict__.update(loaded)
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 3))
optimizer = torch.optim.SGD(net.parameters(), lr=settings.rate)
for x in torch.randn(60, 6).split(20):
    optimizer.zero_grad()
    with torch.autocast(settings.mixed.kind, dtype=settings.mixed.numbers):
        loss = nn.functional.cross_entropy(net(x), x[:, :3].argmax(1))
    loss.backward()
    optimizer.step()
print(loss.item())
