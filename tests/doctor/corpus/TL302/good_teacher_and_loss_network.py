"""A teacher and a network that measures the loss: both in eval mode, neither to be trained."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def mlp(width, out=4):
    return nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Linear(width, out))


class WithFixedBody(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = mlp(12, 12)
        self.head = nn.Linear(12, 4)

    def train(self, mode=True):
        super().train(mode)
        self.body.eval()
        return self

    def forward(self, x):
        return self.head(self.body(x))


torch.manual_seed(0)
x = torch.randn(96, 6)
loader = DataLoader(TensorDataset(x), batch_size=16, shuffle=True)
teacher, measure, student = mlp(64).eval(), nn.Linear(4, 8).eval(), mlp(8)
optimizer = torch.optim.Adam(student.parameters(), lr=1e-3)
for epoch in range(2):
    for (batch,) in loader:
        soft = teacher(batch).softmax(-1)
        out = student(batch)
        loss = F.kl_div(out.log_softmax(-1), soft, reduction="batchmean")
        loss = loss + 0.1 * F.mse_loss(measure(out), measure(teacher(batch)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())

probe = WithFixedBody()
optimizer = torch.optim.Adam(probe.head.parameters(), lr=1e-3)
for epoch in range(2):
    probe.train()
    for (batch,) in loader:
        loss = F.cross_entropy(probe(batch), batch[:, :4].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
