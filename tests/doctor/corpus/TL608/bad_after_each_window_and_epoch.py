import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
inputs, targets = torch.randn(64, 4), torch.randn(64, 1)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)
for epoch in range(4):
    for i, (x, y) in enumerate(zip(inputs.split(8), targets.split(8))):
        (F.mse_loss(model(x), y) / 4).backward()
        if (i + 1) % 4 == 0:
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
    schedule.step()  # <- TL608
