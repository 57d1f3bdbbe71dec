"""Zeros go through the layers while the network is built, to learn the width of what they give."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Pooled(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(12, 8), nn.Linear(8, 6)])
        self.drop = nn.Dropout(0.3)
        with torch.no_grad():
            seen = torch.zeros(1, 12)
            for layer in self.layers:
                seen = self.drop(torch.relu(layer(seen)))
            width = seen.shape[1]
        self.head = nn.Linear(width, 2)

    def forward(self, x):
        for layer in self.layers:
            x = self.drop(torch.relu(layer(x)))
        return self.head(x)


torch.manual_seed(0)
hits = TensorDataset(torch.randn(64, 12), torch.randint(0, 2, (64,)))
held = TensorDataset(torch.randn(32, 12), torch.randint(0, 2, (32,)))
for fold in range(2):
    model = Pooled()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(3):
        model.train()
        for x, y in DataLoader(hits, batch_size=8, shuffle=True):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            right = sum(
                (model(x).argmax(1) == y).sum().item() for x, y in DataLoader(held, batch_size=8)
            )
        print(fold, epoch, right / len(held))
