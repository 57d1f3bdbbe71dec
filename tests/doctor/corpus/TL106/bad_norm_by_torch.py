"""The norm of each gradient is printed; the critic's optimizer never steps."""

import torch
from torch import nn
from torch.utils.data import DataLoader

actor, critic = nn.Linear(6, 3), nn.Linear(6, 1)
first = torch.optim.SGD(actor.parameters(), lr=0.1)
second = torch.optim.SGD(critic.parameters(), lr=0.1)
for epoch in range(2):
    for batch in DataLoader(torch.randn(64, 6), batch_size=8, shuffle=True):
        first.zero_grad()
        actor(batch).pow(2).mean().backward()
        first.step()
        second.zero_grad()
        (critic(batch) - batch.sum(1, keepdim=True)).abs().mean().backward()  # <- TL106
        for name, weight in critic.named_parameters():
            if weight.grad is not None:
                print(epoch, name, torch.norm(weight.grad.detach()))
