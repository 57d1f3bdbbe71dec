import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
# A graph auto-encoder: twelve nodes a graph, one graph at a time.
links = (torch.rand(24, 12, 12) < 0.3).float()
links = torch.maximum(links, links.transpose(1, 2))
loader = DataLoader(TensorDataset(torch.randn(24, 12, 5), links), batch_size=None, shuffle=True)
encoder = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-2)
for epoch in range(4):
    for i, (nodes, adjacent) in enumerate(loader):
        z = encoder(adjacent @ nodes)
        loss = F.binary_cross_entropy_with_logits(z @ z.T, adjacent)
        (loss / 4).backward()
        if i % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
