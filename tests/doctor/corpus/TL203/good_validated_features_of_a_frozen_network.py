"""The training function also validates, without an optimizer; its network is frozen by the program,
and the head that learns is one linear layer."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def run(body, head, loader, optimizer=None):
    total = 0.0
    for x, y in loader:
        inner = body(x)
        loss = nn.functional.cross_entropy(head(inner), y)
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item()
    return total / len(loader)


torch.manual_seed(0)
x = torch.randn(320, 6)
y = (x[:, 0] > 0).long()
loader = DataLoader(TensorDataset(x[:240], y[:240]), batch_size=16, shuffle=True)
held = DataLoader(TensorDataset(x[240:], y[240:]), batch_size=16)
body = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 8), nn.Tanh())
head = nn.Linear(8, 2)
for weight in body.parameters():
    weight.requires_grad = False
body.eval()
optimizer = torch.optim.Adam(head.parameters(), lr=1e-2)
for epoch in range(3):
    head.train()
    run(body, head, loader, optimizer)
    head.eval()
    print(epoch, run(body, head, held))
