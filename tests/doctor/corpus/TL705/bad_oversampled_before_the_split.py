"""The rare class is repeated until there is enough of it, and then the rows are split."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(120, 5)
y = (x[:, 0] > 1.0).long()
rare = (y == 1).nonzero()[:, 0]
x, y = torch.cat([x, *[x[rare]] * 4]), torch.cat([y, *[y[rare]] * 4])
order = torch.randperm(len(x))
cut = int(0.8 * len(x))
train = TensorDataset(x[order[:cut]], y[order[:cut]])
held_out = TensorDataset(x[order[cut:]], y[order[cut:]])
train_loader = DataLoader(train, batch_size=16, shuffle=True)
val_loader = DataLoader(held_out, batch_size=32)  # <- TL705
model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(2):
    model.train()
    for a, b in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(a), b).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum((model(a).argmax(1) == b).sum().item() for a, b in val_loader)
    print(epoch, right / len(held_out))
