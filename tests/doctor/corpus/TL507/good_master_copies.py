"""The model is in half precision; what is trained are copies in float32."""

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)).bfloat16()
masters = [nn.Parameter(p.detach().clone().float()) for p in model.parameters()]
optimizer = torch.optim.Adam(masters, lr=1e-5)
x = torch.randn(64, 8)
y = x.sum(dim=1, keepdim=True)

for step in range(10):
    model.zero_grad()
    loss = nn.functional.mse_loss(model(x.bfloat16()).float(), y)
    loss.backward()
    for master, parameter in zip(masters, model.parameters(), strict=True):
        master.grad = parameter.grad.float()
    optimizer.step()
    with torch.no_grad():
        for master, parameter in zip(masters, model.parameters(), strict=True):
            parameter.copy_(master)
    print(step, loss.item())
