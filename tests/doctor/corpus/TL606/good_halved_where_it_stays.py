"""The rate is halved by hand where an epoch is hardly better than the best; a schedule is left over."""

import torch
from torch import nn

torch.manual_seed(6)
net = nn.Linear(6, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3)
rows = torch.randn(6, 32, 6)
best, hits, seen = 0.0, 0, 0
for epoch in range(6):
    for x in rows:
        y = (x[:, 0] > 0).long()
        optimizer.zero_grad()
        scores = net(x)
        nn.functional.cross_entropy(scores, y).backward()
        optimizer.step()
        hits += int((scores.argmax(1) == y).sum())
        seen += 1
    accuracy = hits / seen
    if accuracy < best + 4:  # of 32 in a batch
        for group in optimizer.param_groups:
            group["lr"] *= 0.5
    best, hits, seen = max(best, accuracy), 0, 0
print(best, schedule.get_last_lr())
