import torch
from torch import nn


def clip_gradients(model, clip):
    for p in model.parameters():
        if p.grad is not None:
            coefficient = clip / (p.grad.norm() + 1e-6)
            if coefficient < 1:
                p.grad.mul_(coefficient)


torch.manual_seed(0)
model = nn.Linear(10, 4)
opt = torch.optim.AdamW(model.parameters())
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for x in torch.randn(6, 16, 10):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(x), x[:, :4].argmax(1))
    opt.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    clip_gradients(model, 3.0)
    scaler.step(opt)
    scaler.update()
print(loss.item())
