"""A stray step after the whole training is one update in many."""
import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(32, 3), torch.randn(32, 1)
model = nn.Linear(3, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
for _ in range(50):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
assert all(p.grad is not None for p in model.parameters())
optimizer.step()
print(loss.item())
