"""One helper freezes the trunk; a callback, which a table calls, thaws it with the same helper."""

import torch
from torch import nn

torch.manual_seed(8)


def learns(module, flag):
    for each in module.parameters():
        each.requires_grad_(flag)


class Sharper(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.head = nn.Linear(9, 12), nn.Linear(12, 9)

    def forward(self, x):
        return self.head(torch.relu(self.trunk(x)))


later = {}


def thaw(net):
    learns(net.trunk, True)


def prepare(net):
    learns(net.trunk, False)
    later[10] = lambda: thaw(net)
    return net


def main():
    net = prepare(Sharper())
    groups = [
        {"params": list(net.trunk.parameters()), "lr": 1e-4},
        {"params": list(net.head.parameters()), "lr": 1e-3},
    ]
    optimizer = torch.optim.Adam(groups)
    for step in range(30):
        if step in later:
            later[step]()
        x = torch.randn(16, 9)
        loss = (net(0.5 * x) - x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
