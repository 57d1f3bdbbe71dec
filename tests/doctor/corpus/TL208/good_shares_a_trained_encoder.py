"""The old model is frozen, and then gets the encoder of the new one, which trains."""

import torch
from torch import nn


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.inlet = nn.Linear(6, 12)
        self.encoder = nn.Sequential(nn.Linear(12, 12), nn.BatchNorm1d(12), nn.ReLU())
        self.outlet = nn.Linear(12, 1)

    def forward(self, x):
        return self.outlet(self.encoder(self.inlet(x)))


torch.manual_seed(0)
old, new = Reader(), Reader()
old.load_state_dict(Reader().state_dict())
for p in old.parameters():
    p.requires_grad = False
old.encoder = new.encoder
optimizer = torch.optim.Adam(new.parameters(), lr=1e-2)
old.train()
new.train()
for step in range(80):
    x = torch.randn(32, 6)
    y = x[:, :1] * x[:, 1:2]
    loss = nn.functional.mse_loss(old(x), y) + nn.functional.mse_loss(new(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
