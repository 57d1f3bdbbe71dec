"""An option chooses one network of a table; all but its last layer become part of the module."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--base", default="small")
args = parser.parse_args()


def base(width):
    return nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Linear(width, 10))


class Tuned(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.table = {"small": base(8), "large": base(32)}
        chosen = self._choose(name)
        self.features = nn.Sequential(*list(chosen.children())[:-1])
        self.head = nn.Linear(chosen[0].out_features, 1)

    def _choose(self, name):
        try:
            return self.table[name]
        except KeyError:
            raise ValueError(f"no network is called {name}") from None

    def forward(self, x):
        return self.head(self.features(x))


torch.manual_seed(0)
net = Tuned(args.base)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(80):
    x = torch.randn(16, 6)
    loss = nn.functional.mse_loss(net(x), x[:, :1] * x[:, 1:2])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
