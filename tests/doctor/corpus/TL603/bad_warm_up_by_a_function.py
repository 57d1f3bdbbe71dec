"""A warm-up over 200 updates, asked once an epoch."""

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset


def warm_up(step, steps=200):
    return min(1.0, (step + 1) / steps)


torch.manual_seed(0)
data = TensorDataset(torch.randn(160, 4), torch.randint(0, 3, (160,)))
loader = DataLoader(data, batch_size=4, shuffle=True)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
scheduler = LambdaLR(optimizer, warm_up)
for epoch in range(6):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    scheduler.step()  # <- TL603
    print(epoch, loss.item())
