"""A regressor in a plain class of its own, with `self.net.forward`."""

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Learner:
    def __init__(self, n_inputs, lr=5e-3):
        self.net = nn.Sequential(nn.Linear(n_inputs, 32), nn.Tanh(), nn.Linear(32, 1))
        self.optimizer = optim.RMSprop(self.net.parameters(), lr=lr)
        self.loss = nn.HuberLoss()

    def predict(self, observation):
        with torch.no_grad():
            return self.net(observation)

    def learn(self, loader):
        for observation, value in loader:
            self.optimizer.zero_grad()
            estimate = self.net.forward(observation)  # <- TL205
            loss = self.loss(estimate, value)
            loss.backward()
            self.optimizer.step()


def main():
    torch.manual_seed(0)
    observations = torch.randn(128, 6)
    values = observations.abs().sum(1, keepdim=True)
    loader = DataLoader(TensorDataset(observations, values), batch_size=32, shuffle=True)
    learner = Learner(n_inputs=6)
    for _ in range(3):
        learner.learn(loader)
    print("first estimate:", learner.predict(observations[:1]).item())


main()
