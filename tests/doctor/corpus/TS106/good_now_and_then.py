import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(*[nn.Linear(12, 12) for _ in range(12)])
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)


def norm_of(model):
    total = 0.0
    for p in model.parameters():
        total += p.grad.norm().item() ** 2
    return total**0.5


for step in range(110):
    x = torch.randn(16, 12)
    loss = nn.functional.mse_loss(model(x), x.flip(1))
    optimizer.zero_grad()
    loss.backward()
    if step % 10 == 0:
        print(step, norm_of(model))
    optimizer.step()
