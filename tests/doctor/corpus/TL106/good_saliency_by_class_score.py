"""Sensitivity of a trained network to its first layer, class by class, in a method of its own."""
import torch
from torch import nn


class Classifier:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=0.01)

    def fit(self, x, y, epochs):
        self.net.train()
        for _ in range(epochs):
            self.optimizer.zero_grad()
            nn.functional.cross_entropy(self.net(x), y).backward()
            self.optimizer.step()

    def sensitivity(self, x):
        self.net.train(False)
        found = {}
        for label in range(3):
            self.optimizer.zero_grad()
            self.net(x)[:, label].sum().backward()
            found[label] = norm_of(self)
        return found


def norm_of(classifier):
    return float(classifier.net[0].weight.grad.norm())


if __name__ == "__main__":
    torch.manual_seed(0)
    classifier = Classifier()
    x, y = torch.randn(16, 4), torch.randint(0, 3, (16,))
    classifier.fit(x, y, 3)
    print(classifier.sensitivity(x))
