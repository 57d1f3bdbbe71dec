"""A batch whose loss is not finite is left out."""

import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(30):
    x, y = torch.rand(8, 4), torch.rand(8, 1)
    spread = model(x).std() if step % 10 else model(x[:1]).std()
    loss = nn.functional.mse_loss(model(x), y) + 0.1 * spread
    optimizer.zero_grad()
    if step < 15 and torch.isnan(loss):
        continue
    loss.backward()
    if not torch.isfinite(clip_grad_norm_(model.parameters(), 1.0)):
        continue
    optimizer.step()
