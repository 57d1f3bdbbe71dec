"""The set of what learns begins with the head; the last layer joins it before the rest is frozen."""

import torch
from torch import nn

torch.manual_seed(21)
tower = nn.ModuleDict(
    {"stem": nn.Linear(5, 16), "last": nn.Linear(16, 16), "head": nn.Linear(16, 3)}
)
learns = set(tower["head"].parameters())
learns.update(tower["last"].parameters())
for weight in tower.parameters():
    weight.requires_grad = weight in learns
optimizer = torch.optim.SGD(
    [{"params": tower["head"].parameters()}, {"params": tower["last"].parameters(), "lr": 0.01}],
    lr=0.05,
)
features = torch.randn(120, 5)
kinds = features[:, :3].argmax(1)
for epoch in range(4):
    for rows in torch.randperm(120).split(20):
        hidden = tower["stem"](features[rows]).relu()
        scores = tower["head"](tower["last"](hidden).relu())
        optimizer.zero_grad()
        nn.functional.cross_entropy(scores, kinds[rows]).backward()
        optimizer.step()
    print(epoch)
