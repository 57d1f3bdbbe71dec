"""All parameters that have a gradient are updated in one call."""
import torch
from torch import nn

torch.manual_seed(1)
model = nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(9, 4, 3):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    moved = [each for each in model.parameters() if each.grad is not None]
    with torch.no_grad():
        torch._foreach_add_(moved, [each.grad for each in moved], alpha=-0.1)
print(loss.item())
