"""The teacher's score is taken before; the student's `train()` wakes the teacher that it holds."""
import torch
from torch import nn


def network(width):
    return nn.Sequential(nn.Linear(6, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, 3))


def score(net, x, y):
    before = net.training
    net.eval()
    with torch.no_grad():
        hits = (net(x).argmax(1) == y).float().mean().item()
    net.train(before)
    return hits


class Pair(nn.Module):
    def __init__(self, teacher):
        super().__init__()
        self.teacher, self.student = teacher.eval().requires_grad_(False), network(8)

    def forward(self, x):
        with torch.no_grad():
            wanted = self.teacher(x).softmax(1)
        return nn.functional.cross_entropy(self.student(x), wanted)


torch.manual_seed(0)
x = torch.randn(320, 6)
y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
teacher = network(32)
optimizer = torch.optim.Adam(teacher.parameters(), lr=1e-2)
teacher.train()
for rows in torch.randperm(len(x)).split(32):
    optimizer.zero_grad()
    nn.functional.cross_entropy(teacher(x[rows]), y[rows]).backward()
    optimizer.step()
print("teacher", score(teacher, x, y))
pair = Pair(teacher)
optimizer = torch.optim.Adam(pair.student.parameters(), lr=1e-2)
for epoch in range(3):
    pair.train()
    for rows in torch.randperm(len(x)).split(32):
        loss = pair(x[rows])  # <- TL208
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, score(pair.student, x, y))
