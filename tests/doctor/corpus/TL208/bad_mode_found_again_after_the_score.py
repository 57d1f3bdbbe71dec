"""The score leaves the teacher in the train mode of its own training, in which it then teaches."""
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


def fit(net, x, y):
    net.train()
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    for _ in range(3):
        for rows in torch.randperm(len(x)).split(40):
            optimizer.zero_grad()
            F.cross_entropy(net(x[rows]), y[rows]).backward()
            optimizer.step()


def teach(teacher, student, x, epochs):
    teacher.requires_grad_(False)
    optimizer = torch.optim.Adam(student.parameters(), lr=5e-3)
    for _ in range(epochs):
        student.train()
        for rows in torch.randperm(len(x)).split(40):
            with torch.no_grad():
                wanted = F.softmax(teacher(x[rows]) / 2, dim=1)  # <- TL208
            loss = F.cross_entropy(student(x[rows]) / 2, wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


torch.manual_seed(4)
x = torch.randn(400, 5)
y = (x[:, 0] * x[:, 1] > 0).long()
teacher, student = stack(64, 0.3), stack(8, 0.0)
fit(teacher, x, y)
print("teacher", hits(teacher, x, y))
teach(teacher, student, x, epochs=3)
print("student", hits(student, x, y))
