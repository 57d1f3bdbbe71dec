"""Objects that are not modules have layers: a teacher that follows the encoder slowly, branches that
are registered by the model that uses them, and filters that hand their parameters out."""

import copy
import itertools

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class SlowCopy:
    def __init__(self, module):
        self.module = copy.deepcopy(module)

    @torch.no_grad()
    def follow(self, module, rate=0.05):
        for old, new in zip(self.module.parameters(), module.parameters(), strict=True):
            old.lerp_(new, rate)

    @torch.no_grad()
    def __call__(self, x):
        return self.module(x)


class Branches:
    def __init__(self, size, names):
        self.of = {name: nn.Linear(size, size) for name in names}

    def total(self, x):
        return sum(torch.tanh(branch(x)) for branch in self.of.values())


class Filters:
    def __init__(self, size):
        self.first, self.second = nn.Linear(size, size), nn.Linear(size, size)

    def parameters(self):
        return itertools.chain(self.first.parameters(), self.second.parameters())

    def apply(self, x):
        return self.second(F.relu(self.first(x)))


class Student(nn.Module):
    def __init__(self, size=8):
        super().__init__()
        self.encoder = nn.Linear(size, size)
        self.teacher = SlowCopy(self.encoder)
        self.branches = Branches(size, ("wide", "narrow"))
        for name, branch in self.branches.of.items():
            self.add_module(f"branch_{name}", branch)
        self.filters = Filters(size)

    def forward(self, x):
        mine = self.filters.apply(self.branches.total(self.encoder(x)))
        return mine, self.teacher(x)

    def follow(self):
        self.teacher.follow(self.encoder)


torch.manual_seed(6)
student = Student()
optimizer = torch.optim.Adam([*student.parameters(), *student.filters.parameters()], lr=1e-3)
for epoch in range(2):
    for (x,) in DataLoader(TensorDataset(torch.randn(96, 8)), batch_size=16, shuffle=True):
        mine, slow = student(x)
        loss = F.mse_loss(mine, slow) + F.mse_loss(mine, x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        student.follow()
    print(epoch, loss.item())
