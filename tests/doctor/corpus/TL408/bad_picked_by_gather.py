"""A policy's log-probabilities, normalised over the episodes of the batch."""

import torch
from torch import nn, optim


class Policy(nn.Module):
    def __init__(self, states=6, actions=3):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(states, 16), nn.Tanh(), nn.Linear(16, actions))

    def forward(self, state):
        return self.body(state)


def update(policy, optimizer, states, actions, returns):
    log_probabilities = torch.log_softmax(policy(states), 0)  # <- TL408
    chosen = log_probabilities.gather(1, actions.unsqueeze(1)).squeeze(1)
    loss = -(chosen * returns).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


torch.manual_seed(0)
policy = Policy()
optimizer = optim.Adam(policy.parameters(), lr=1e-2)
for _ in range(8):
    states = torch.randn(20, 6)
    print(update(policy, optimizer, states, torch.randint(0, 3, (20,)), states[:, 0]))
