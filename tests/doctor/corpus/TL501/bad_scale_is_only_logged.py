"""The program asks for the scale to print it; the limit is that of plain gradients."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.05)
scaler = torch.amp.GradScaler("cpu", init_scale=4096.0)
LIMIT = 2.0
for epoch in range(3):
    for x in torch.randn(96, 6).split(16):
        opt.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = (model(x)[:, 0] - x.sum(1)).square().mean()
        scaler.scale(loss).backward()
        print("scale", scaler.get_scale())
        nn.utils.clip_grad_norm_(model.parameters(), LIMIT)  # <- TL501
        scaler.step(opt)
        scaler.update()
    print(epoch, loss.item())
