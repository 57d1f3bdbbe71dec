"""Each optimizer steps, under a name that is not its own."""

import torch
from torch import nn


def apply(each):
    each.step()
    each.zero_grad()


torch.manual_seed(0)
parts = {"encoder": nn.Linear(7, 3), "decoder": nn.Linear(3, 7)}
first = torch.optim.Adam(parts["encoder"].parameters(), lr=1e-3)
second = torch.optim.Adam(parts["decoder"].parameters(), lr=1e-2)
table = {"encoder": first, "decoder": second}
for turn in range(16):
    x = torch.randn(16, 7)
    error = (parts["decoder"](parts["encoder"](x)) - x).pow(2).mean()
    error.backward()
    for name in sorted(parts, key=len):
        apply(table[name])
    print(turn, error.item())
