# Keeps the old forward, puts another in its place and calls the old one inside it.
import functools

import torch
import torch.nn as nn


def with_log(module, log):
    old_forward = module.forward

    @functools.wraps(old_forward)
    def new_forward(*args, **kwargs):
        output = old_forward(*args, **kwargs)
        log.append(float(output.detach().abs().mean()))
        return output

    module.forward = new_forward
    return module


torch.manual_seed(0)
sizes = []
model = with_log(nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1)), sizes)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x = torch.randn(64, 3)
y = x.sum(dim=1, keepdim=True)
for step in range(20):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
print(loss.item(), len(sizes))
