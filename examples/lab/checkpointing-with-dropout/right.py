"""A stack of blocks with dropout, each behind torch's checkpoint with its default, right.

The recomputation draws the masks of the forward pass again. The first gradient is compared with
that of the plain stack under the same random state; then the stack is trained.
"""

import json
import sys

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
x = torch.randn(256, 16)
y = (x @ torch.randn(16, 1)).tanh()
entry, head = nn.Linear(16, 64), nn.Linear(64, 1)
blocks = nn.ModuleList(
    nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.5)) for _ in range(3)
)
parameters = [*entry.parameters(), *blocks.parameters(), *head.parameters()]
optimizer = torch.optim.Adam(parameters, lr=3e-3)


def plain(block, h):
    return block(h)


def checkpointed(block, h):
    return checkpoint(block, h, use_reentrant=False)


def loss_of(through):
    h = entry(x)
    for block in blocks:
        h = h + through(block, h)
    return nn.functional.mse_loss(head(h), y)


def gradient(through):
    torch.manual_seed(seed + 1000)
    optimizer.zero_grad()
    loss_of(through).backward()
    return torch.cat([p.grad.flatten() for p in parameters])


expected, ours = gradient(plain), gradient(checkpointed)
losses = []
for _ in range(150):
    optimizer.zero_grad()
    loss = loss_of(checkpointed)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(
    json.dumps(
        {
            "equal": int(torch.equal(expected, ours)),
            "error": ((ours - expected).norm() / expected.norm()).item(),
            "last_loss": sum(losses[-20:]) / 20,
            "loss": losses,
        }
    )
)
