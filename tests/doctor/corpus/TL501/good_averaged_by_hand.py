"""Gradients are divided by the number of replicas, scaled or not: no limit is applied."""
import torch
from torch import nn

torch.manual_seed(0)
replicas = 4
model = nn.Linear(6, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
for x in torch.randn(5, 8, 6):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(model(x), x[:, :2].argmax(1))
    scaler.scale(loss).backward()
    for p in model.parameters():
        p.grad.div_(replicas)
    scaler.step(opt)
    scaler.update()
print(loss.item())
