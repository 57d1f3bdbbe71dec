"""Actions of a teacher in a control task: they follow from the state, but no column is the action."""

import torch
from torch import nn

torch.manual_seed(6)
states = torch.randn(500, 4)
teacher = ((0.4 * states[:, 0] + states[:, 2]) > 0).long()
policy = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
for epoch in range(4):
    for chosen in torch.randperm(500).split(64):
        optimizer.zero_grad()
        nn.functional.cross_entropy(policy(states[chosen]), teacher[chosen]).backward()
        optimizer.step()
