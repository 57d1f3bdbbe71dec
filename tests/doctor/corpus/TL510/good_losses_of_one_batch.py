"""A loss for each head, backward one after the other: each head knows the labels of other samples.
And an adversarial pair, and one backward for parts that were added up before."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
trunk = nn.Linear(6, 16)
heads = nn.ModuleList(nn.Linear(16, 3) for _ in range(3))
optimizer = torch.optim.Adam([*trunk.parameters(), *heads.parameters()], lr=1e-2)
for _ in range(8):
    x = torch.randn(20, 6)
    labels = torch.randint(0, 3, (3, 20))
    labels[torch.rand(3, 20) < torch.rand(3, 1) * 0.8] = -100
    optimizer.zero_grad()
    for head, y in zip(heads, labels, strict=True):
        loss = F.cross_entropy(head(trunk(x).relu()), y, ignore_index=-100) / len(heads)
        loss.backward()
    optimizer.step()

for _ in range(8):
    optimizer.zero_grad()
    losses = []
    for size in (4, 9, 16):
        x, y = torch.randn(size, 6), torch.randint(0, 3, (size,))
        losses.append(F.cross_entropy(heads[0](trunk(x)), y))
    torch.stack(losses).mean().backward()
    optimizer.step()
