"""A policy with a memory of its own: its `Transformer` has neither dropout nor batch norm."""

import torch
from torch import nn


class Transformer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.mix = nn.Linear(2 * dim, dim)
        self.norm = nn.LayerNorm(dim)

    def forward(self, x, memory):
        out = self.norm(x + self.mix(torch.cat([x, memory], 1)))
        return out, out.detach()


class Agent(nn.Module):
    def __init__(self, dim=6):
        super().__init__()
        self.transformer, self.actor = Transformer(dim), nn.Linear(dim, 3)

    def act(self, x, memory):
        x, memory = self.transformer(x, memory)
        return torch.distributions.Categorical(logits=self.actor(x)), memory


torch.manual_seed(0)
agent = Agent()
optimizer = torch.optim.Adam(agent.parameters(), lr=1e-3)
for iteration in range(10):
    memory, seen = torch.zeros(8, 6), []
    for step in range(5):
        observation = torch.randn(8, 6)
        with torch.no_grad():
            policy, new = agent.act(observation, memory)
            action = policy.sample()
        seen.append((observation, action, (action == 1).float()))
        memory = new
    for observation, action, reward in seen:
        policy, _ = agent.act(observation, torch.zeros(8, 6))
        loss = -(policy.log_prob(action) * (reward - reward.mean())).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
