"""The data set grows while it is trained on (DAgger): each round is trained on all that there is."""

import torch
import torch.nn as nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(128, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)


class Aggregate:
    def __init__(self):
        self.states, self.actions = [], []

    def add(self, states):
        self.states.append(states)
        self.actions.append((states[:, 0] > states[:, 1]).long())

    def draw(self):
        index = torch.randint(len(self.states), (1,)).item()
        return self.states[index], self.actions[index]


data = Aggregate()
for step in range(400):
    data.add(torch.randn(1024, 128))
    states, actions = data.draw()
    loss = nn.functional.cross_entropy(policy(states), actions)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
