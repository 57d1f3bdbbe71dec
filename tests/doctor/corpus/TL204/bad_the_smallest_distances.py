"""`torch.min` gives the distances and the codes: the distances are kept with their graph."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(640, 6)), batch_size=8, shuffle=True)
encoder = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 2))
centres = nn.Parameter(torch.randn(5, 2))
optimizer = torch.optim.Adam([*encoder.parameters(), centres], lr=1e-3)
codes, distances = [], []
for epoch in range(3):
    for (x,) in loader:
        away = torch.cdist(encoder(x), centres)
        smallest, code = torch.min(away, dim=1)
        optimizer.zero_grad()
        smallest.mean().backward()
        optimizer.step()
        codes.append(code)
        distances.append(smallest.mean(0))  # <- TL204
print(torch.cat(codes).bincount(), len(distances))
