import torch
from torch import nn

torch.manual_seed(0)
a, b, c = nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 1)
for module in (a, b):
    module.requires_grad_(False)
lower = torch.optim.SGD(  # <- TL309
    [{"params": a.parameters()}, {"params": b.parameters(), "lr": 0.01}], lr=0.1
)
upper = torch.optim.SGD(c.parameters(), lr=0.1)
for _ in range(5):
    x, y = torch.randn(6, 3), torch.randn(6, 1)
    nn.functional.mse_loss(c(torch.relu(b(torch.relu(a(x))))), y).backward()
    for optimizer in (lower, upper):
        optimizer.step()
        optimizer.zero_grad()
