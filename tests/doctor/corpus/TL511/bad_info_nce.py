import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
accumulate = 4
pairs = TensorDataset(torch.randn(256, 10), torch.randn(256, 10))
loader = DataLoader(pairs, batch_size=16, shuffle=True)
encoder = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 8))
optimizer = torch.optim.AdamW(encoder.parameters(), lr=1e-3)

for epoch in range(3):
    for i, (anchors, positives) in enumerate(loader):
        a = F.normalize(encoder(anchors), dim=1)
        b = F.normalize(encoder(positives), dim=1)
        logits = a @ b.T / 0.1
        loss = F.cross_entropy(logits, torch.arange(len(a))) / accumulate
        loss.backward()  # <- TL511
        if (i + 1) % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
    print(epoch, loss.item())
