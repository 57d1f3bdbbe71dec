"""Test-time adaptation: a copy trains its batch norms alone, with dropout in eval mode."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X = torch.randn(256, 10)
Y = (X[:, 0] > 0).long()
train_loader = DataLoader(TensorDataset(X, Y), batch_size=32, shuffle=True)
val_loader = DataLoader(TensorDataset(X[:96] + 0.1, Y[:96]), batch_size=32)
model = nn.Sequential(
    nn.Linear(10, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 2)
)

import copy

opt = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(2):
    for x, y in train_loader:
        opt.zero_grad()
        F.cross_entropy(model(x), y).backward()
        opt.step()


def tent(source, loader):
    net = copy.deepcopy(source)
    net.train()
    net.requires_grad_(False)
    ps = []
    for m in net.modules():
        if isinstance(m, nn.BatchNorm1d):
            m.requires_grad_(True)
            m.track_running_stats = False
            m.running_mean = m.running_var = None
            ps += list(m.parameters())
        elif isinstance(m, nn.Dropout):
            m.eval()
    o = torch.optim.Adam(ps, 1e-3)
    hits = 0
    for x, y in loader:
        out = net(x)
        p = out.softmax(1)
        loss = -(p * out.log_softmax(1)).sum(1).mean()
        o.zero_grad()
        loss.backward()
        o.step()
        hits += (out.argmax(1) == y).sum().item()
    return hits / len(loader.dataset)


print(tent(model, val_loader))
