"""Only the big network runs in float16; the temperature is learned in float32 beside it."""
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 4))
temperature = nn.Linear(1, 1)
opt_net = torch.optim.AdamW(net.parameters(), lr=1e-3)
opt_temp = torch.optim.SGD(temperature.parameters(), lr=1e-2)
scaler = torch.amp.GradScaler("cpu", init_scale=128.0)
ds = torch.utils.data.TensorDataset(torch.randn(40, 6), torch.randint(0, 4, (40,)))
for x, y in torch.utils.data.DataLoader(ds, batch_size=8, shuffle=True):
    opt_net.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        logits = net(x)
        loss = nn.functional.cross_entropy(logits, y)
    scaler.scale(loss).backward()
    scaler.step(opt_net)
    scaler.update()

    opt_temp.zero_grad()
    t = nn.functional.softplus(temperature(torch.ones(1, 1)))
    calibration = nn.functional.cross_entropy(logits.detach().float() * t, y)
    calibration.backward()
    opt_temp.step()
print(loss.item(), calibration.item())
