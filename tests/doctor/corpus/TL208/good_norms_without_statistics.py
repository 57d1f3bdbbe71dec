"""The teacher's norms keep no running statistics: they are the same in both modes."""

import torch
from torch import nn
from torch.nn import functional as F


def net(width):
    return nn.Sequential(
        nn.Conv1d(2, width, 3, padding=1),
        nn.GroupNorm(2, width),
        nn.ReLU(),
        nn.BatchNorm1d(width, track_running_stats=False),
        nn.Flatten(),
        nn.LayerNorm(6 * width),
        nn.Dropout(p=0.0),
        nn.Linear(6 * width, 3),
    )


torch.manual_seed(0)
torch.save(net(8).state_dict(), "teacher.pt")
teacher, student = net(8), net(4)
teacher.load_state_dict(torch.load("teacher.pt", weights_only=True))
teacher.requires_grad_(False)
optimizer = torch.optim.AdamW(student.parameters(), lr=1e-3)
for step in range(12):
    x = torch.randn(10, 2, 6)
    loss = F.mse_loss(student(x), teacher(x))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
