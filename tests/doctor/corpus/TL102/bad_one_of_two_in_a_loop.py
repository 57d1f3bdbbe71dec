"""Two optimizers step in one loop over their names; only one of them is cleared."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
rows = torch.randn(160, 5)
clicked = (rows.sum(1) > 0).float()
parts = nn.ModuleDict(
    {
        "linear": nn.Linear(5, 1),
        "hidden": nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1)),
    }
)
optimizers = {
    "linear": torch.optim.SGD(parts["linear"].parameters(), lr=0.1),
    "hidden": torch.optim.Adam(parts["hidden"].parameters(), lr=1e-3),
}


def update(loss):
    optimizers["linear"].zero_grad()
    loss.backward()
    for name in parts:
        optimizers[name].step()  # <- TL102


for epoch in range(4):
    for chosen in torch.randperm(len(rows)).split(16):
        scores = sum(part(rows[chosen]) for part in parts.values()).squeeze(1)
        update(F.binary_cross_entropy_with_logits(scores, clicked[chosen]))
    print(epoch)
