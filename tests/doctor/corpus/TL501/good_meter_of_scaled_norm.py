import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(5, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=128.0)
for x in torch.randn(12, 8, 5):
    opt.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        out = model(x)
    loss = out.float().pow(2).mean()
    scaler.scale(loss).backward()
    # watch how near the scaled gradients are to overflow; nothing is clipped
    scaled_norm = nn.utils.clip_grad_norm_(model.parameters(), float("inf"))
    print(f"{scaled_norm.item():.1f} of 65504")
    scaler.step(opt)
    scaler.update()
