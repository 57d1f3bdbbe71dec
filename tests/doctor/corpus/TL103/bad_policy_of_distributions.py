"""The policy gives a distribution; the step comes before the backward of its log-probability."""
import torch
from torch import nn
from torch.distributions import Independent, Normal


class Actor(nn.Module):
    def __init__(self, sees, acts):
        super().__init__()
        self.mean = nn.Sequential(nn.Linear(sees, 16), nn.Tanh(), nn.Linear(16, acts))
        self.log_std = nn.Parameter(torch.zeros(acts))

    def forward(self, state):
        return Independent(Normal(self.mean(state), self.log_std.exp()), 1)


class Agent:
    def __init__(self, actor):
        self.actor = actor
        self.optimizer = torch.optim.Adam(actor.parameters(), lr=3e-3)

    def update(self, loss):
        self.optimizer.zero_grad()
        self.optimizer.step()  # <- TL103
        loss.backward()


torch.manual_seed(0)
agent = Agent(Actor(3, 2))
goal = torch.randn(3, 2)
for _ in range(40):
    state = torch.randn(32, 3)
    policy = agent.actor(state)
    action = policy.sample()
    reward = -(action - state @ goal).pow(2).sum(1)
    advantage = (reward - reward.mean()) / (reward.std() + 1e-6)
    agent.update(-(policy.log_prob(action) * advantage).mean())
