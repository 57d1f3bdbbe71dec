"""The teacher is trained first; nobody puts it into eval mode before it gives the targets."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def network(width):
    return nn.Sequential(nn.Linear(6, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, 3))


def train_teacher(loader):
    teacher = network(16)
    optimizer = torch.optim.Adam(teacher.parameters(), lr=3e-3)
    for _ in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(teacher(x), y).backward()
            optimizer.step()
    return teacher


def distil(teacher, loader):
    student = network(4)
    optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)
    for _ in range(2):
        for x, _ in loader:
            with torch.no_grad():
                soft = F.softmax(teacher(x) / 2, dim=1)  # <- TL208
            log_p = F.log_softmax(student(x) / 2, dim=1)
            loss = F.kl_div(log_p, soft, reduction="batchmean")
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return student


torch.manual_seed(0)
y = torch.randint(0, 3, (96,))
data = TensorDataset(torch.randn(3, 6)[y] + 0.3 * torch.randn(96, 6), y)
loader = DataLoader(data, batch_size=16, shuffle=True)
distil(train_teacher(loader), loader)
