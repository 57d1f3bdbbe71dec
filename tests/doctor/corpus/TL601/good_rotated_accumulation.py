"""Accumulation, and a loop whose turn begins with the update of the last one's gradients."""

import torch
import torch.nn as nn
from torch.optim.lr_scheduler import ExponentialLR, LambdaLR

torch.manual_seed(0)
torch.set_num_threads(1)
data = torch.randn(256, 8)
target = data.sum(dim=1, keepdim=True)
batches = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(data, target), batch_size=16, shuffle=True, drop_last=True
)
accumulate = 4

model = nn.Linear(8, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scheduler = LambdaLR(optimizer, lr_lambda=lambda step: min(1.0, (step + 1) / 8))
decay = ExponentialLR(optimizer, gamma=0.9)

for epoch in range(3):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(batches):
        loss = nn.functional.mse_loss(model(x), y) / accumulate
        loss.backward()
        if (i + 1) % accumulate == 0:
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
    decay.step()
    print(epoch, loss.item() * accumulate, scheduler.get_last_lr())
