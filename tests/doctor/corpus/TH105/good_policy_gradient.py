"""A policy gradient through a cross-entropy of the actions taken: its value says nothing."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(policy.parameters(), lr=1e-9)
for _ in range(240):
    states = torch.randn(12, 4)
    logits = policy(states)
    actions = torch.distributions.Categorical(logits=logits.detach()).sample()
    rewards = (actions == (states[:, 0] > 0)).float()
    advantage = (rewards - rewards.mean()) / (rewards.std() + 1e-6)
    loss = (F.cross_entropy(logits, actions, reduction="none") * advantage).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(rewards.mean().item())
