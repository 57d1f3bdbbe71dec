"""Three blocks are updated in turn, each by its own optimizer."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X = torch.randn(256, 10)
Y = (X[:, 0] > 0).long()
train_loader = DataLoader(TensorDataset(X, Y), batch_size=32, shuffle=True)
val_loader = DataLoader(TensorDataset(X[:96] + 0.1, Y[:96]), batch_size=32)

enc, mid, out = nn.Linear(10, 16), nn.Linear(16, 16), nn.Linear(16, 2)
oe, om, oo = (torch.optim.Adam(m.parameters(), 1e-3) for m in (enc, mid, out))
k = 0
for epoch in range(3):
    for x, y in train_loader:
        loss = F.cross_entropy(out(F.relu(mid(F.relu(enc(x))))), y)
        oe.zero_grad()
        om.zero_grad()
        oo.zero_grad()
        loss.backward()
        if k % 3 == 0:
            oe.step()
        elif k % 3 == 1:
            om.step()
        else:
            oo.step()
        k += 1
