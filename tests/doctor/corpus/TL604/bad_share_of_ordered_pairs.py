"""How often the score of a positive sample is above that of a negative one."""

import torch
from torch import nn

torch.manual_seed(5)
x = torch.randn(320, 6)
y = (x[:, 0] + 0.5 * torch.randn(320) > 0).float()
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1), nn.Flatten(0))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1, factor=0.3)


@torch.no_grad()
def ranking(x, y):
    scores = net(x)
    positives, negatives = scores[y == 1], scores[y == 0]
    return (positives[:, None] > negatives[None]).float().mean().item()


for epoch in range(8):
    for rows in torch.randperm(240).split(24):
        loss = nn.functional.binary_cross_entropy_with_logits(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    quality = ranking(x[240:], y[240:])
    plateau.step(quality)  # <- TL604
    print(epoch, quality)
