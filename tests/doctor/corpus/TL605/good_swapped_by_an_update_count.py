"""Optimizer and schedule are replaced once, when half of the updates are done."""

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

total = 8 * len(train_loader)
half = total // 2
it = 0
opt = torch.optim.SGD(model.parameters(), 0.1)
sched = torch.optim.lr_scheduler.LinearLR(opt, 1.0, 0.01, total_iters=half)
done = False
while not done:
    for x, y in train_loader:
        if it == half:
            opt = torch.optim.AdamW(model.parameters(), 1e-4)
            sched = torch.optim.lr_scheduler.LinearLR(opt, 1.0, 0.01, total_iters=total - half)
        opt.zero_grad()
        F.cross_entropy(model(x), y).backward()
        opt.step()
        sched.step()
        it += 1
        if it >= total:
            done = True
            break
