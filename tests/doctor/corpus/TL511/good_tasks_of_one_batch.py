import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
pairs = TensorDataset(torch.randn(96, 10), torch.randn(96, 10))
loader = DataLoader(pairs, batch_size=16, shuffle=True)
encoder = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 8))
optimizer = torch.optim.SGD(encoder.parameters(), lr=1e-2)
for epoch in range(4):
    for anchors, positives in loader:
        optimizer.zero_grad()
        for temperature in (0.1, 0.5):
            a, b = F.normalize(encoder(anchors), dim=1), F.normalize(encoder(positives), dim=1)
            loss = F.cross_entropy(a @ b.T / temperature, torch.arange(len(a)))
            (loss / 2).backward()
        optimizer.step()
