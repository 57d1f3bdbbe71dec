"""Gradients are measured and applied by hand in proportion: nothing has to step."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(6, 8, 4):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            rate = 0.1 / (p.grad.norm() + 1.0)
            p.sub_(rate * p.grad)
print(loss.item())
