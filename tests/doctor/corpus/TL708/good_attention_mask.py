"""Minus infinity in a mask that the loader gives along."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Pooled(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(6, 1)
        self.out = nn.Linear(6, 2)

    def forward(self, x, mask):
        weights = (self.score(x).squeeze(-1) + mask).softmax(dim=1)
        return self.out((weights.unsqueeze(-1) * x).sum(1))


torch.manual_seed(0)
x, y = torch.randn(48, 7, 6), torch.randint(0, 2, (48,))
mask = torch.zeros(48, 7)
mask[:, 5:] = float("-inf")
loader = DataLoader(TensorDataset(x, mask, y), batch_size=12, shuffle=True)
model = Pooled()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for inputs, masked, labels in loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(inputs, masked), labels).backward()
    optimizer.step()
