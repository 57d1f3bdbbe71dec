"""The teacher is an average of the student and normalises as the student does."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
student = nn.Sequential(
    nn.Linear(4, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Dropout(0.2), nn.Linear(12, 3)
)
student.load_state_dict(
    {
        name: value * 1.1
        for name, value in student.state_dict().items()
        if value.dtype.is_floating_point
    },
    strict=False,
)
teacher = copy.deepcopy(student)
for p in teacher.parameters():
    p.requires_grad_(False)


@torch.no_grad()
def average(momentum):
    for slow, fast in zip(teacher.parameters(), student.parameters()):
        slow.mul_(momentum).add_(fast, alpha=1 - momentum)


optimizer = torch.optim.Adam(student.parameters(), lr=1e-3)
x, y = torch.randn(80, 4), torch.randint(0, 3, (80,))
for epoch in range(3):
    for rows in torch.randperm(80).split(16):
        with torch.no_grad():
            wanted = teacher(x[rows]).softmax(1)
        logits = student(x[rows])
        loss = F.cross_entropy(logits, y[rows]) + F.mse_loss(logits.softmax(1), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average(0.99)
