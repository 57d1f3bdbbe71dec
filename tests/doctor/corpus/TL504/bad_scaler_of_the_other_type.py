"""The scaler is made for the other type of numbers than the one that the network runs in."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

half = torch.float16
needs_scaler = half == torch.bfloat16
scaler = torch.amp.GradScaler("cpu") if needs_scaler else None
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
optimizer = torch.optim.Adam(net.parameters())
data = TensorDataset(torch.randn(32, 4), torch.randint(0, 3, (32,)))
for inputs, targets in DataLoader(data, batch_size=8, shuffle=True):
    with torch.autocast("cpu", dtype=half):
        loss = F.cross_entropy(net(inputs), targets)
    optimizer.zero_grad()
    if scaler is not None:
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    else:
        loss.backward()  # <- TL504
        optimizer.step()
