"""One helper freezes the trunk and thaws the head; the trunk has a group of its own."""

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


def prepare(net):
    learns(net.trunk, False)
    learns(net.head, True)
    return net


def main():
    net = prepare(Sharper())
    groups = [
        {"params": list(net.trunk.parameters()), "lr": 1e-4},
        {"params": list(net.head.parameters()), "lr": 1e-3},
    ]
    optimizer = torch.optim.Adam(groups)  # <- TL309
    for step in range(30):
        x = torch.randn(16, 9)
        loss = (net(0.5 * x) - x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
