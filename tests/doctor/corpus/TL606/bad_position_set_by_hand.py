"""The schedule's position is set for the resume, and never moves from there."""
import torch
from torch import nn
from torch.optim import lr_scheduler

EPOCHS, FIRST = 6, 0
x = torch.randn(48, 5)
y = (x[:, 0] > 0).long()
net = nn.Sequential(nn.Linear(5, 12), nn.ReLU(), nn.Linear(12, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9)
scheduler = lr_scheduler.LambdaLR(optimizer, lr_lambda=lambda epoch: 1 - epoch / EPOCHS)  # <- TL606
scheduler.last_epoch = FIRST - 1
for epoch in range(FIRST, EPOCHS):
    for start in range(0, 48, 16):
        if epoch == 0:
            for group in optimizer.param_groups:
                group["lr"] = 0.2 * (start + 16) / 48
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x[start : start + 16]), y[start : start + 16]).backward()
        optimizer.step()
    print(epoch, [group["lr"] for group in optimizer.param_groups])
