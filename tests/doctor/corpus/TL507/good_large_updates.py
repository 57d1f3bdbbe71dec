"""A small model in bfloat16 whose updates are large enough to arrive."""

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Linear(8, 1).bfloat16()
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
x = torch.randn(64, 8).bfloat16()
y = x.float().sum(dim=1, keepdim=True)
for step in range(12):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x).float(), y)
    loss.backward()
    optimizer.step()
    print(step, loss.item())
