"""The gradient is estimated from scores of perturbed weights."""

import torch
from torch import nn

torch.manual_seed(0)
X, y = torch.randn(32, 3), torch.randn(32, 1)
policy = nn.Linear(3, 1)
optimizer = torch.optim.Adam(policy.parameters(), lr=0.02)


def score():
    return -nn.functional.mse_loss(policy(X), y).item()


for generation in range(4):
    optimizer.zero_grad()
    for p in policy.parameters():
        p.grad = torch.zeros_like(p)
    for _ in range(4):
        noises = [0.05 * torch.randn_like(p) for p in policy.parameters()]
        for sign in (1, -1):
            with torch.no_grad():
                for p, e in zip(policy.parameters(), noises):
                    p.add_(e, alpha=sign)
            reward = score()
            with torch.no_grad():
                for p, e in zip(policy.parameters(), noises):
                    p.sub_(e, alpha=sign)
                    p.grad.sub_(e, alpha=sign * reward)
    optimizer.step()
