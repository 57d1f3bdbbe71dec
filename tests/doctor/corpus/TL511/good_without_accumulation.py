import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(128, 6)), 8, shuffle=True, drop_last=True)
encoder = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 5))
optimizer = torch.optim.AdamW(encoder.parameters(), lr=1e-3)
for epoch in range(3):
    for (x,) in loader:
        a = F.normalize(encoder(x + 0.1 * torch.randn_like(x)), dim=1)
        b = F.normalize(encoder(x + 0.1 * torch.randn_like(x)), dim=1)
        loss = F.cross_entropy(a @ b.T / 0.2, torch.arange(len(a)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
