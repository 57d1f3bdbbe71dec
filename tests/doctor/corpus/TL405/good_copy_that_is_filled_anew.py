"""Smoothed labels in a copy of the scores, which supplies shape and device alone."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
net = nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
criterion = nn.KLDivLoss(reduction="batchmean")
for x, y in zip(torch.randn(8, 16, 4), torch.randint(0, 3, (8, 16))):
    scores = F.log_softmax(net(x), dim=-1)
    smooth = scores.data.clone()
    smooth.fill_(0.1 / 2)
    smooth.scatter_(1, y.unsqueeze(1), 0.9)
    loss = criterion(scores, smooth)
    opt.zero_grad()
    loss.backward()
    opt.step()
