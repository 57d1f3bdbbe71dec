import math
import random

import torch
from torch import nn


class Agent:
    def __init__(self):
        self.q = nn.Linear(4, 2)
        self.optimizer = torch.optim.Adam(self.q.parameters(), lr=1e-2)
        self.epsilon, self.floor, self.decay, self.steps = 1.0, 0.05, 400.0, 0

    def act(self, state):
        self.steps += 1
        fall = self.steps / self.decay
        self.epsilon = self.floor + (self.epsilon - self.floor) * math.exp(-fall)  # <- TL609
        if random.random() < self.epsilon:
            return random.randrange(2)
        with torch.no_grad():
            return int(self.q(state).argmax())

    def learn(self, state, action, reward):
        loss = (self.q(state)[action] - reward) ** 2
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


random.seed(0)
torch.manual_seed(0)
agent = Agent()
for _ in range(30):
    state = torch.randn(4)
    action = agent.act(state)
    agent.learn(state, action, float((state[0] > 0) == action))
print(agent.epsilon)
