"""The policy gives a distribution, and the loss takes its probabilities for logits."""
import torch
from torch import nn
from torch.distributions import Categorical


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 32), nn.Linear(32, 3)

    def forward(self, state):
        return Categorical(logits=self.head(torch.tanh(self.body(state))))


class Imitation:
    def __init__(self, policy):
        self.policy = policy
        self.optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
        self.criterion = nn.CrossEntropyLoss()

    def update(self, state, action):
        chosen = self.policy(state)
        loss = self.criterion(chosen.probs, action)  # <- TL401
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


torch.manual_seed(0)
imitation = Imitation(Policy())
for epoch in range(4):
    states = torch.randn(32, 4)
    print(imitation.update(states, (states[:, 0] > 0).long() + (states[:, 1] > 0).long()))
