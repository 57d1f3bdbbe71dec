"""Each gradient is clamped to a range that was multiplied by the loss scale."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.05)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
data = torch.randn(96, 6)
for epoch in range(2):
    for x in data.split(16):
        opt.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = (model(x)[:, 0] - x.sum(1)).square().mean()
        scaler.scale(loss).backward()
        most = 0.5 * scaler.get_scale()
        for p in model.parameters():
            p.grad.clamp_(-most, most)
        scaler.step(opt)
        scaler.update()
    print(epoch, loss.item())
