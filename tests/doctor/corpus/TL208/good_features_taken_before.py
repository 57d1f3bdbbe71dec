"""The frozen network runs in train mode only to gather its statistics; then it is asked in eval."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def network():
    return nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2))


torch.manual_seed(0)
source = network()
source(torch.randn(40, 5) + 3)
torch.save(source.state_dict(), "net.pt")
net = network()
net.load_state_dict(torch.load("net.pt", weights_only=True))
for p in net.parameters():
    p.requires_grad_(False)
rows, labels = torch.randn(64, 5), torch.randint(0, 2, (64,))
net.train()
with torch.no_grad():
    for part in rows.split(16):
        net(part)
net.eval()
head = nn.Linear(8, 2)
optimizer = torch.optim.Adam(head.parameters(), lr=1e-2)
loader = DataLoader(TensorDataset(rows, labels), batch_size=16, shuffle=True)
for epoch in range(3):
    for x, y in loader:
        with torch.no_grad():
            features = net(x)
        loss = nn.functional.cross_entropy(head(features), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
