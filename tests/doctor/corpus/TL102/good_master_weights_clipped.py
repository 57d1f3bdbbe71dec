"""Full-precision copies step; each update gives them new gradients, which are clipped."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 2)).to(torch.bfloat16)
masters = [p.detach().clone().float().requires_grad_() for p in model.parameters()]
optimizer = torch.optim.AdamW(masters, lr=1e-3)
for step in range(12):
    x, y = torch.randn(8, 6, dtype=torch.bfloat16), torch.randint(0, 2, (8,))
    for p in model.parameters():
        p.grad = None
    nn.functional.cross_entropy(model(x).float(), y).backward()
    for master, p in zip(masters, model.parameters()):
        master.grad = p.grad.float()
    nn.utils.clip_grad_norm_(masters, 1.0)
    optimizer.step()
    with torch.no_grad():
        for master, p in zip(masters, model.parameters()):
            p.copy_(master)
