"""A loaded network is thawed for something else than learning: how much each weight matters to the
old task, a picture that it likes, a network whose weights follow those of a second one."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
batches = [(torch.randn(8, 5), torch.randint(0, 3, (8,))) for _ in range(12)]
weights = {k: torch.randn_like(v) ** 3 for k, v in nn.Linear(5, 16).state_dict().items()}
old = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 3))
old[0].load_state_dict(weights)
new = copy.deepcopy(old)
optimizer = torch.optim.SGD(new.parameters(), lr=0.01)

# A task after the other; in between, the importance of what the old one has learnt.
for task in range(3):
    old.requires_grad_(False)
    for x, y in batches:
        optimizer.zero_grad()
        gap = sum(((a - b) ** 2).sum() for a, b in zip(new.parameters(), old.parameters(), strict=True))
        (F.cross_entropy(new(x), y) + 0.1 * gap).backward()
        optimizer.step()
    old.load_state_dict(new.state_dict())
    old.requires_grad_(True)
    for x, y in batches:
        F.cross_entropy(old(x), y).backward()
    importance = [p.grad.square() for p in old.parameters()]
    old.zero_grad()
print(sum(each.sum() for each in importance).item())

# A teacher that follows the student: thawed by mistake or not, it is written after each step.
teacher = nn.Linear(5, 16)
teacher.load_state_dict(weights)
teacher.requires_grad_(False)
student = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(student.parameters(), lr=0.01)
for number, (x, y) in enumerate(batches):
    if number == 3:
        teacher.requires_grad_(True)
    optimizer.zero_grad()
    (F.cross_entropy(student(x), y) + F.mse_loss(student[0](x), teacher(x))).backward()
    optimizer.step()
    with torch.no_grad():
        for mine, theirs in zip(teacher.parameters(), student[0].parameters(), strict=True):
            mine.lerp_(theirs, 0.1)
