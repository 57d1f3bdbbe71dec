"""The score leaves the teacher in eval mode, in which it was put before it teaches."""
import torch
from torch import nn
from torch.nn import functional as F


def stack(width, rate):
    parts = [nn.Linear(5, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(rate)]
    return nn.Sequential(*parts, nn.Linear(width, 2))


def hits(net, x, y):
    mode = net.training
    net.eval()
    with torch.no_grad():
        found = (net(x).argmax(1) == y).float().mean().item()
    net.train(mode)
    return found


torch.manual_seed(4)
x = torch.randn(400, 5)
y = (x[:, 0] * x[:, 1] > 0).long()
teacher, student = stack(64, 0.3), stack(8, 0.0)
optimizer = torch.optim.Adam(teacher.parameters(), lr=5e-3)
for epoch in range(3):
    teacher.train()
    for rows in torch.randperm(len(x)).split(40):
        optimizer.zero_grad()
        F.cross_entropy(teacher(x[rows]), y[rows]).backward()
        optimizer.step()
teacher.eval().requires_grad_(False)
optimizer = torch.optim.Adam(student.parameters(), lr=5e-3)
for epoch in range(3):
    student.train()
    for rows in torch.randperm(len(x)).split(40):
        with torch.no_grad():
            wanted = F.softmax(teacher(x[rows]) / 2, dim=1)
        loss = F.cross_entropy(student(x[rows]) / 2, wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, hits(teacher, x, y), hits(student, x, y))
