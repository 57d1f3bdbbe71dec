"""The value of the chosen action is a column, what it should be is not."""

import random
from collections import deque

import torch
import torch.nn as nn


def play(memory, steps):
    for _ in range(steps):
        state = torch.randn(4)
        action = random.randrange(2)
        memory.append((state, action, float(state[action]), torch.randn(4)))


class Agent:
    def __init__(self):
        self.q = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
        self.target = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
        self.target.load_state_dict(self.q.state_dict())
        self.optimizer = torch.optim.RMSprop(self.q.parameters(), lr=1e-3)

    def learn(self, transitions):
        states, actions, rewards, following = zip(*transitions, strict=True)
        states, following = torch.stack(states), torch.stack(following)
        actions, rewards = torch.tensor(actions), torch.tensor(rewards)
        chosen = self.q(states).gather(1, actions[:, None])
        with torch.no_grad():
            wanted = rewards + 0.9 * self.target(following).max(1).values
        loss = (chosen - wanted).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()  # <- TL404
        self.optimizer.step()


if __name__ == "__main__":
    torch.manual_seed(0)
    random.seed(0)
    memory, agent = deque(maxlen=500), Agent()
    for _ in range(12):
        play(memory, 20)
        agent.learn(random.sample(list(memory), 16))
