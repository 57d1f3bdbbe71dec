"""The loss of an update is the sum over the domains, and the batches are remembered for a replay."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loaders = []
for shift in (0.0, 0.5, 1.0):
    x = torch.randn(64, 6) + shift
    data = TensorDataset(x, (x[:, 0] > shift).long())
    loaders.append(DataLoader(data, batch_size=16, shuffle=True))
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for epoch in range(3):
    streams = [iter(loader) for loader in loaders]
    for update in range(4):
        batches = [next(stream) for stream in streams]
        optimizer.zero_grad()
        for inputs, targets in batches:
            loss = nn.functional.cross_entropy(model(inputs), targets)
            loss.backward()
        optimizer.step()
    print(epoch, loss.item())

memory = []
for batch in loaders[0]:
    memory.append(batch)
    optimizer.zero_grad()
    for inputs, targets in memory:
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
    optimizer.step()
