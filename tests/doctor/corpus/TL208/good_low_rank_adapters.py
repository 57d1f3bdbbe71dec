"""Low-rank adapters inside of a frozen base, whose dropout stays on while they learn."""

import torch
from torch import nn


class Adapted(nn.Module):
    def __init__(self, base, rank):
        super().__init__()
        self.base = base
        self.base.requires_grad_(False)
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(8, 8)
        self.out = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.1))

    def forward(self, x):
        return x + self.out(torch.relu(self.query(x)))


torch.manual_seed(0)
torch.save(nn.Sequential(Block(), Block()).state_dict(), "base.pt")
model = nn.Sequential(Block(), Block())
model.load_state_dict(torch.load("base.pt", weights_only=True))
model.requires_grad_(False)
for block in model:
    block.query = Adapted(block.query, 2)
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
model.train()
for step in range(12):
    x = torch.randn(6, 8)
    loss = (model(x) - x.flip(1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
