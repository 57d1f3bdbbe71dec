"""The temperature's loss is differentiated by a method each time, and its optimizer left at that."""

import torch
from torch import nn


class Agent:
    def __init__(self):
        self.policy = nn.Linear(5, 3)
        self.log_heat = nn.Parameter(torch.zeros(1))
        self.of_policy = torch.optim.Adam(self.policy.parameters(), lr=0.01)
        self.of_heat = torch.optim.Adam([self.log_heat], lr=0.01)

    def scaled(self, value, log_scale):
        return value * log_scale.exp()

    def improve(self, seen):
        chances = self.policy(seen).softmax(1)
        entropy = -(chances * chances.log()).sum(1).mean()
        loss = (chances * seen[:, :3]).sum(1).mean() - self.scaled(entropy, self.log_heat.detach())
        self.of_policy.zero_grad()
        loss.sum().backward()
        self.of_policy.step()
        return entropy.detach()

    def heat(self, entropy):
        self.of_heat.zero_grad()
        loss = self.scaled(entropy - 0.9, self.log_heat).sum()
        loss.backward()  # <- TL106


torch.manual_seed(1)
agent = Agent()
for _ in range(60):
    agent.heat(agent.improve(torch.randn(12, 5)))
