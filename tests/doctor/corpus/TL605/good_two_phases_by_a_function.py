"""A function makes optimizer and schedule for each of two phases, as long as the phase."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X = torch.randn(96, 6)
Y = (X.sum(1) > 0).long()
loader = DataLoader(TensorDataset(X, Y), batch_size=16, shuffle=True)

net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))


def make(params, n, lr):
    opt = torch.optim.AdamW(params, lr)
    return opt, torch.optim.lr_scheduler.LinearLR(opt, 1.0, 0.0, total_iters=n)


opt, sched = make(net[2].parameters(), 3, 1e-2)
for epoch in range(10):
    if epoch == 3:
        opt, sched = make(net.parameters(), 7, 1e-3)
    for x, y in loader:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
    sched.step()
