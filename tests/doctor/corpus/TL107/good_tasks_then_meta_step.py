"""First-order meta-learning: each task's inner loop trains a copy, the outer step comes after."""
import copy

import torch
from torch import nn

torch.manual_seed(0)
mse = nn.MSELoss()
meta_model = nn.Sequential(nn.Linear(1, 16), nn.ReLU(), nn.Linear(16, 1))
meta_opt = torch.optim.Adam(meta_model.parameters(), lr=1e-3)


def sample_task():
    a = torch.rand(1) * 4 + 1
    x = torch.rand(10, 1) * 6 - 3
    return x, a * torch.sin(x)


for iteration in range(5):
    meta_opt.zero_grad()
    for task in range(4):
        x, y = sample_task()
        learner = copy.deepcopy(meta_model)
        inner_opt = torch.optim.SGD(learner.parameters(), lr=0.02)
        for _ in range(3):
            loss = mse(learner(x), y)
            inner_opt.zero_grad()
            loss.backward()
            inner_opt.step()
        for p, q in zip(meta_model.parameters(), learner.parameters()):
            g = (p.data - q.data) / 4
            p.grad = g if p.grad is None else p.grad + g
    meta_opt.step()
print(loss.item())
