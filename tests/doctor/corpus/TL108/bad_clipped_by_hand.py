import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters())


def clip(limit):
    for p in model.parameters():
        if p.grad is None:
            continue
        norm = p.grad.norm()
        if norm > limit:
            p.grad.mul_(limit / norm)


for x in torch.randn(6, 8, 4):
    loss = nn.functional.mse_loss(model(x), x[:, :1])
    optimizer.zero_grad()
    clip(1.0)
    optimizer.step()  # <- TL108
print(loss.item())
