"""A loss on the pairs that were hit is a loss: it should fall."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(120, 5)
y = (x[:, 0] > 0).float()
model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2)
for epoch in range(5):
    model.train()
    for part in torch.randperm(96).split(16):
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(x[part]).squeeze(1), y[part])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        scores = model(x[96:]).squeeze(1)
        hit = (scores > 0) == (y[96:] > 0)
        loss_per_hit = nn.functional.softplus(-scores.abs()).sum().item() / max(1, int(hit.sum()))
    plateau.step(loss_per_hit)
    print(epoch, loss_per_hit)
