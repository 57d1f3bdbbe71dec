"""The program divides by the scale itself before it clips."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(6, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=64.0, enabled=False)
scale = 128.0
for x in torch.randn(5, 8, 6):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(model(x), x[:, :2].argmax(1))
    (scaler.scale(loss) * scale).backward()
    norm = 0.0
    for p in model.parameters():
        p.grad.mul_(1.0 / scale)
        norm += float(p.grad.pow(2).sum())
    for p in model.parameters():
        p.grad.mul_(min(1.0, 1.0 / (norm**0.5 + 1e-6)))
    scaler.step(opt)
    scaler.update()
print(loss.item())
