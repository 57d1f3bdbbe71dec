"""Two OneCycle schedules, each over half of the epochs."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X = torch.randn(96, 6)
Y = (X.sum(1) > 0).long()
loader = DataLoader(TensorDataset(X, Y), batch_size=16, shuffle=True)

net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))
EPOCHS = 8
opt = torch.optim.SGD(net.parameters(), 1e-1, momentum=0.9)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, 0.2, total_steps=EPOCHS // 2 * len(loader))
for epoch in range(EPOCHS):
    if epoch == EPOCHS // 2:
        opt = torch.optim.Adam(net.parameters(), 1e-3)
        sched = torch.optim.lr_scheduler.OneCycleLR(
            opt, 1e-2, total_steps=(EPOCHS - EPOCHS // 2) * len(loader)
        )
    for x, y in loader:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
        sched.step()
