"""The type of numbers is chosen once, and decides whether there is a scaler."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = "cuda" if torch.cuda.is_available() else "cpu"
modern = torch.cuda.is_available() and torch.cuda.is_bf16_supported()
half = torch.bfloat16 if modern else torch.float16
needs_scaler = half == torch.float16
scaler = torch.amp.GradScaler("cuda") if needs_scaler else None
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)).to(device)
optimizer = torch.optim.Adam(net.parameters())
data = TensorDataset(torch.randn(32, 4), torch.randint(0, 3, (32,)))
for inputs, targets in DataLoader(data, batch_size=8, shuffle=True):
    inputs, targets = inputs.to(device), targets.to(device)
    with torch.autocast("cuda", dtype=half):
        loss = F.cross_entropy(net(inputs), targets)
    optimizer.zero_grad()
    if scaler is not None:
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    else:
        loss.backward()
        optimizer.step()
