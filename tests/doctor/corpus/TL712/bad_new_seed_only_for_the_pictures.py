"""Every epoch draws the same noise for its batches: the new seed comes after them."""

import torch
from torch import nn

torch.manual_seed(1)
signals = torch.rand(48, 9)
cleaner = nn.Sequential(nn.Linear(9, 16), nn.Tanh(), nn.Linear(16, 9))
optimizer = torch.optim.Adam(cleaner.parameters(), lr=1e-3)
for epoch in range(8):
    torch.manual_seed(0)  # <- TL712
    for clean in signals[torch.randperm(48)].split(8):
        noisy = clean + 0.3 * torch.randn_like(clean)
        loss = nn.functional.mse_loss(cleaner(noisy), clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.seed()
    with torch.no_grad():
        print(epoch, round(cleaner(torch.randn(3, 9)).std().item(), 3))
