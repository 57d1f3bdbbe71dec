"""A target network that is copied from the one that learns, every ten updates."""

import torch
from torch import nn
from torch.nn import functional as F


def value_network():
    return nn.Sequential(
        nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 2)
    )


torch.manual_seed(0)
online, target = value_network(), value_network()
target.load_state_dict(online.state_dict())
target.requires_grad_(False)
optimizer = torch.optim.Adam(online.parameters(), lr=1e-3)
for step in range(25):
    state, after = torch.randn(16, 4), torch.randn(16, 4)
    action, reward = torch.randint(0, 2, (16, 1)), torch.randn(16)
    wanted = reward + 0.9 * target(after).max(1).values
    loss = F.smooth_l1_loss(online(state).gather(1, action).squeeze(1), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        target.load_state_dict(online.state_dict())
