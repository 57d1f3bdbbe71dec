import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=3)  # <- TL606
for epoch in range(3):
    for _ in range(4):
        x = torch.randn(4, 3)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
        optimizer.step()
