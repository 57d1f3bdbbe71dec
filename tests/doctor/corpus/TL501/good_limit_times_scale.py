"""The limit is multiplied by the loss scale, so it is one of scaled gradients."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 3))
opt = torch.optim.SGD(model.parameters(), lr=0.05)
scaler = torch.amp.GradScaler("cpu", init_scale=512.0)


def update(x, y, most):
    opt.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scale = scaler.get_scale()
    limit = most * float(scale)
    nn.utils.clip_grad_norm_(model.parameters(), max_norm=limit)
    scaler.step(opt)
    scaler.update()
    return loss.item()


for epoch in range(2):
    for x in torch.randn(6, 12, 8):
        loss = update(x, x[:, :3].argmax(1), 1.0)
    print(epoch, loss)
