"""Two nets, two optimizers: the second's gradients are cleared after the first has stepped."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X = torch.randn(64, 4)
Y = X.sum(1, keepdim=True)
actor = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
critic = nn.Linear(4, 1)
actor_optimizer = torch.optim.Adam(actor.parameters(), lr=1e-3)
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-2)
for epoch in range(2):
    for x, y in DataLoader(TensorDataset(X, Y), batch_size=8, shuffle=True):
        actor_optimizer.zero_grad()
        ((critic(x) - y) ** 2).mean().backward()
        ((actor(x) - y) ** 2).mean().backward()
        actor_optimizer.step()
        critic_optimizer.zero_grad()  # <- TL101
        critic_optimizer.step()
