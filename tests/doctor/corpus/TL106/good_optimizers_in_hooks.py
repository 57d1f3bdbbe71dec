"""Each parameter has an optimizer of its own, which steps within backward."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X = torch.randn(256, 10)
Y = (X[:, 0] > 0).long()
train_loader = DataLoader(TensorDataset(X, Y), batch_size=32, shuffle=True)
val_loader = DataLoader(TensorDataset(X[:96] + 0.1, Y[:96]), batch_size=32)

model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
opts = {p: torch.optim.Adam([p], lr=1e-3) for p in model.parameters()}


def hook(p):
    opts[p].step()
    opts[p].zero_grad()


for p in model.parameters():
    p.register_post_accumulate_grad_hook(hook)
for epoch in range(3):
    for x, y in train_loader:
        F.cross_entropy(model(x), y).backward()
