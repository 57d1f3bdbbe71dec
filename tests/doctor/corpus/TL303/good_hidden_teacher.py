"""The teacher hides in a list so that it is neither trained nor saved with the student."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def mlp(width):
    return nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Linear(width, 3))


class Distiller(nn.Module):
    def __init__(self, student, teacher):
        super().__init__()
        self.student = student
        self.teacher = [teacher.eval().requires_grad_(False)]

    def forward(self, x):
        with torch.no_grad():
            soft = self.teacher[0](x).softmax(-1)
        log_p = F.log_softmax(self.student(x), -1)
        return F.kl_div(log_p, soft, reduction="batchmean")


class Perceptual(nn.Module):
    """A loss with a fixed network inside."""

    def __init__(self):
        super().__init__()
        self.slices = [nn.Linear(3, 8), nn.Linear(8, 8)]
        for layer in self.slices:
            for parameter in layer.parameters():
                parameter.requires_grad = False

    def forward(self, a, b):
        distance = 0.0
        for layer in self.slices:
            a, b = layer(a), layer(b)
            distance = distance + (a - b).abs().mean()
        return distance


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(64, 6)), batch_size=16, shuffle=True)
teacher, student = mlp(64), mlp(8)
distiller, perceptual = Distiller(student, teacher), Perceptual()
optimizer = torch.optim.Adam(distiller.parameters(), lr=1e-3)
for epoch in range(2):
    for (x,) in loader:
        loss = distiller(x) + 0.1 * perceptual(student(x), teacher(x).detach())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
