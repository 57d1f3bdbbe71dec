"""156 rows in parts of 12 are 13 batches, and an update takes 4: one batch of each pass is erased."""

import torch
from torch import nn

ROWS, PART, TOGETHER = 156, 12, 4


def one_pass(net, optimizer, signal, wanted):
    seen = 0
    optimizer.zero_grad()
    parts = torch.split(torch.randperm(ROWS), PART)
    for rows in parts:
        loss = nn.functional.smooth_l1_loss(net(signal[rows]), wanted[rows]) / TOGETHER
        loss.backward()
        seen += 1
        if seen % TOGETHER == 0:
            optimizer.step()  # <- TL506
            optimizer.zero_grad()


torch.manual_seed(0)
signal = torch.randn(ROWS, 9)
wanted = signal.cumsum(1)[:, -2:]
net = nn.Sequential(nn.Linear(9, 18), nn.ReLU(), nn.Linear(18, 2))
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
for _ in range(4):
    one_pass(net, optimizer, signal, wanted)
