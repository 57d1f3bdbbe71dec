"""REINFORCE, one observation at a time: dimension 0 is the only one there is."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine = nn.Linear(4, 16)
        self.action_head = nn.Linear(16, 2)

    def forward(self, observation):
        return F.softmax(self.action_head(F.relu(self.affine(observation))), dim=0)


torch.manual_seed(0)
torch.set_num_threads(1)
policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)

for episode in range(10):
    log_probs, rewards = [], []
    state = torch.randn(4)
    for t in range(8):
        probs = policy(state)
        distribution = torch.distributions.Categorical(probs)
        action = distribution.sample()
        log_probs.append(distribution.log_prob(action))
        rewards.append(float(state[0]) * (1 if action.item() == 1 else -1))
        state = torch.randn(4)
    returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
    loss = -(torch.stack(log_probs) * (returns - returns.mean())).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(episode, sum(rewards))
