"""The gradients of several tasks are added up on purpose: each draws its own batch."""
import torch
from torch import nn


class Task:
    def __init__(self):
        self.weights = torch.randn(5)

    def sample(self, size):
        x = torch.randn(size, 5)
        return x, (x @ self.weights)[:, None]


def backward_of(net, heads, tasks):
    for task, head in zip(tasks, heads):
        x, y = task.sample(8)
        loss = nn.functional.mse_loss(head(net(x)), y)
        loss.backward()


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 16), nn.ReLU())
heads = nn.ModuleList(nn.Linear(16, 1) for _ in range(3))
optimizer = torch.optim.Adam([*net.parameters(), *heads.parameters()], lr=1e-3)
tasks = [Task() for _ in range(3)]
for update in range(30):
    optimizer.zero_grad()
    backward_of(net, heads, tasks)
    optimizer.step()
