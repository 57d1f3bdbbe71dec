"""Snapshots: a new cosine and the first rate again in each cycle."""

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

opt = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
cycle, snaps = 2, []
for epoch in range(4):
    if epoch % cycle == 0:
        sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, cycle * len(train_loader))
        [g.update(lr=0.1) for g in opt.param_groups]
    model.train()
    for x, y in train_loader:
        opt.zero_grad()
        F.cross_entropy(model(x), y).backward()
        opt.step()
        sched.step()
    if epoch % cycle == cycle - 1:
        snaps.append({k: v.detach().clone() for k, v in model.state_dict().items()})
model.eval()
with torch.no_grad():
    probs = 0
    for s in snaps:
        model.load_state_dict(s)
        probs = probs + model(X).softmax(1)
