import torch
from torch import nn

for reduction in ("mean", "sum"):
    torch.manual_seed(0)
    model, x, y = nn.Linear(16, 4), torch.randn(64, 16), torch.randint(0, 4, (64,))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scaler, scales = torch.amp.GradScaler("cpu"), []
    for _ in range(8):
        scales.append(int(scaler.get_scale()))
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            output = model(x).float()
        scaler.scale(nn.functional.cross_entropy(output, y, reduction=reduction)).backward()
        scaler.step(optimizer)  # left out if a gradient is not finite
        scaler.update()  # and then the scale is halved
    print(f"{reduction:<4}  scale before each update {scales}")
