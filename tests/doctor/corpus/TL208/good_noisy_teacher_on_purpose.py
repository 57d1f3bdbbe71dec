"""The teacher is asked with dropout on, several times: the spread of its answers is the weight."""

import torch
from torch import nn
from torch.nn import functional as F


def regressor(width):
    return nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Dropout(0.2), nn.Linear(width, 1))


torch.manual_seed(0)
torch.save(regressor(32).state_dict(), "teacher.pt")
teacher, student = regressor(32), regressor(8)
teacher.load_state_dict(torch.load("teacher.pt", weights_only=True))
teacher.requires_grad_(False)
teacher.train()
optimizer = torch.optim.Adam(student.parameters(), lr=1e-3)
for step in range(12):
    x = torch.randn(16, 3)
    with torch.no_grad():
        answers = torch.stack([teacher(x) for _ in range(4)])
    weight = 1 / (answers.var(0) + 0.1)
    loss = (weight * F.mse_loss(student(x), answers.mean(0), reduction="none")).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
