"""Each domain's gradient is drawn to their mean, which is a constant on purpose: its own part of
the derivative is zero."""
import torch
from torch import nn
from torch.nn import functional as F


class Aligned:
    def __init__(self, weight):
        self.network = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 2))
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=0.01)
        self.weight = weight

    def update(self, domains):
        total, gradients = 0, []
        for x, y in domains:
            loss = F.cross_entropy(self.network(x), y)
            total += loss
            found = torch.autograd.grad(loss, self.network.parameters(), create_graph=True)
            gradients.append(found)
        mean_loss = total / len(domains)
        mean = torch.autograd.grad(mean_loss, self.network.parameters(), retain_graph=True)
        penalty = 0
        for gradient in gradients:
            for one, other in zip(gradient, mean):
                penalty += (one - other).pow(2).sum()
        objective = mean_loss + self.weight * penalty
        self.optimizer.zero_grad()
        objective.backward()
        self.optimizer.step()
        return objective.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    aligned = Aligned(10.0)
    for _ in range(3):
        batches = [(torch.randn(8, 3), torch.randint(0, 2, (8,))) for _ in range(2)]
        print(aligned.update(batches))
