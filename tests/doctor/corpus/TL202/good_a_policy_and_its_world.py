"""What the policy does changes what it sees; its rollouts are what it trains on."""

import torch
from torch import nn


class World:
    def __init__(self):
        self.state = torch.zeros(1, 4)

    def step(self, action):
        self.state = (self.state + torch.randn(1, 4) * (action.item() + 1)).clamp(-3, 3)
        return self.state.clone(), -self.state.abs().mean()


torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 16), nn.Dropout(0.1), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(policy.parameters())
world = World()
for update in range(4):
    seen, done, rewards = [], [], []
    state = world.state
    with torch.no_grad():
        for _ in range(8):
            action = torch.distributions.Categorical(logits=policy(state)).sample()
            seen.append(state)
            done.append(action)
            state, reward = world.step(action)
            rewards.append(reward)
    chances = torch.distributions.Categorical(logits=policy(torch.cat(seen)))
    loss = -(chances.log_prob(torch.cat(done)) * torch.stack(rewards)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
