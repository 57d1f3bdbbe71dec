import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
pairs = TensorDataset(torch.randn(192, 10), torch.randn(192, 10))
loader = DataLoader(pairs, batch_size=32, shuffle=True)
encoder = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 8))
optimizer = torch.optim.AdamW(encoder.parameters(), lr=1e-3)


def embed(x):
    return F.normalize(encoder(x), dim=1)


for epoch in range(3):
    for anchors, positives in loader:
        parts = list(zip(anchors.split(8), positives.split(8)))
        with torch.no_grad():
            kept = [(embed(a), embed(b)) for a, b in parts]
        for a, b in kept:
            a.requires_grad_()
            b.requires_grad_()
        logits = torch.cat([a for a, _ in kept]) @ torch.cat([b for _, b in kept]).T / 0.1
        optimizer.zero_grad()
        F.cross_entropy(logits, torch.arange(len(logits))).backward()
        for (x, y), (a, b) in zip(parts, kept):
            torch.autograd.backward((embed(x), embed(y)), (a.grad, b.grad))
        optimizer.step()
