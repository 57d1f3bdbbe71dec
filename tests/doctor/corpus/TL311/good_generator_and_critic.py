"""One loss feeds both, and each holds its own network."""

import torch
from torch import nn


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.policy = nn.Linear(4, 2)
        self.value = nn.Linear(4, 1)

    def forward(self, s):
        return self.policy(s), self.value(s)


torch.manual_seed(0)
pair = Pair()
actor = torch.optim.Adam(pair.policy.parameters(), lr=3e-4)
critic = torch.optim.Adam(pair.value.parameters(), lr=1e-3)
for _ in range(5):
    logits, values = pair(torch.randn(8, 4))
    loss = values.pow(2).mean() + torch.logsumexp(logits, 1).mean()
    actor.zero_grad()
    critic.zero_grad()
    loss.backward()
    actor.step()
    critic.step()
