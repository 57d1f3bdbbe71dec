"""An actor and a critic: each step leaves a pair with graphs, which the end of the episode uses."""

import torch
from torch import nn

torch.manual_seed(9)
actor = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 2))
critic = nn.Linear(3, 1)
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=1e-2)
memory = []
for episode in range(25):
    state = torch.zeros(3)
    for _ in range(6):
        choice = torch.distributions.Categorical(logits=actor(state))
        action = choice.sample()
        reward = float(action == (state.sum() > 0))
        memory.append((choice.log_prob(action), critic(state).squeeze(), reward))
        state = torch.randn(3)
    terms = []
    for log_prob, value, reward in memory:
        advantage = reward - value
        terms.append(advantage.square() - log_prob * advantage.detach())
    loss = torch.stack(terms).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    memory.clear()
