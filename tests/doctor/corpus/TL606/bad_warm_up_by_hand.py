"""The first updates are warmed up by hand; the decay that should follow is never stepped."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

WARM = 4
torch.manual_seed(3)
x = torch.randn(80, 5)
loader = DataLoader(TensorDataset(x, x[:, :1] * x[:, 1:2]), batch_size=8, shuffle=True)
net = nn.Sequential(nn.Linear(5, 20), nn.ReLU(), nn.Linear(20, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)  # <- TL606
for epoch in range(4):
    for i, (inputs, targets) in enumerate(loader):
        seen = i + epoch * len(loader)
        if seen < WARM:
            for group in optimizer.param_groups:
                group["lr"] = 0.05 * (seen + 1) / WARM
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(inputs), targets)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item(), decay.get_last_lr())
