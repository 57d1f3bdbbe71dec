"""Folds with a new optimizer each, and one model through all of them."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

torch.manual_seed(0)
x = torch.randn(100, 4)
dataset = TensorDataset(x, (x.sum(1) > 0).float()[:, None])
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
criterion = nn.BCEWithLogitsLoss()
scores = []
for fold, chosen in enumerate(torch.randperm(100).chunk(4)):
    held_out = chosen.tolist()
    rest = [i for i in range(100) if i not in set(held_out)]
    train_loader = DataLoader(Subset(dataset, rest), batch_size=15, shuffle=True)
    test_loader = DataLoader(Subset(dataset, held_out), batch_size=25)  # <- TL705
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(2):
        model.train()
        for a, b in train_loader:
            optimizer.zero_grad()
            criterion(model(a), b).backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        for a, b in test_loader:
            scores.append(((model(a) > 0) == b).float().mean().item())
print(sum(scores) / len(scores))
