"""Updates are counted by hand; the cosine is as long as somebody's earlier run."""

from itertools import cycle

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(48, 4), torch.randn(48, 1))
batches = cycle(DataLoader(data, batch_size=12, shuffle=True))
net = nn.Linear(4, 1)
opt = optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
cosine = optim.lr_scheduler.CosineAnnealingLR(opt, 60, eta_min=1e-5)  # <- TL605
updates = 0
while updates < 150:
    x, y = next(batches)
    loss = nn.functional.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    cosine.step()
    updates += 1
