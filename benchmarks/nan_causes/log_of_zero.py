"""A hand-written cross-entropy of probabilities that reach 0."""

import torch
from torch import nn


class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        gates = torch.relu(self.head(self.body(x)))
        shares = gates / (gates.sum(dim=1, keepdim=True) + 1e-6)
        return torch.log(shares)


torch.manual_seed(0)
model = Mixture()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(20):
    x, y = torch.randn(32, 8), torch.randint(0, 4, (32,))
    loss = nn.functional.nll_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
