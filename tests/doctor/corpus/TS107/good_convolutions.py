"""Convolutions use the tensor cores by default."""

import torch
import torch.nn as nn

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))
net.to(device)
opt = torch.optim.SGD(net.parameters(), lr=0.01, fused=True)
for step in range(80):
    x = torch.randn(8, 3, 12, 12, device=device)
    loss = nn.functional.cross_entropy(net(x), torch.arange(8, device=device) % 4)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
