import random

import numpy as np
import torch
from torch import nn


class Agent:
    def __init__(self):
        self.net = nn.Linear(3, 2)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-3)
        self.epsilon = 1.0
        self.steps = 0

    def act(self, state):
        if random.random() < self.epsilon:
            return random.randrange(2)
        with torch.no_grad():
            return int(self.net(state).argmax())

    def learn(self, state, action, reward):
        value = self.net(state)[action]
        loss = nn.functional.mse_loss(value, torch.tensor(float(reward)))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.steps += 1
        self.epsilon = self.epsilon * np.exp(-self.steps / 500)  # <- TL609


torch.manual_seed(0)
agent = Agent()
for episode in range(8):
    state = torch.randn(3)
    action = agent.act(state)
    agent.learn(state, action, reward=episode % 2)
