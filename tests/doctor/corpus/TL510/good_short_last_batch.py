"""The last batch of each epoch has fewer samples; all others have as many."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(60, 5), torch.randint(0, 3, (60,)))
loader = DataLoader(data, batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(4):
    for i, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(x), y) / 2
        loss.backward()
        if (i + 1) % 2 == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
