"""The head learns first; then everything does, batch norm included."""

import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU())
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.body(x))


torch.manual_seed(0)
old = Net()
old.body(torch.randn(30, 5) - 1)
torch.save(old.state_dict(), "net.pt")
model = Net()
model.load_state_dict(torch.load("net.pt", weights_only=True))
model.head = nn.Linear(8, 2)
for p in model.body.parameters():
    p.requires_grad = False
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
x, y = torch.randn(48, 5), torch.randint(0, 2, (48,))
for epoch in range(4):
    if epoch == 2:
        for p in model.body.parameters():
            p.requires_grad = True
    model.train()
    for rows in torch.randperm(48).split(12):
        optimizer.zero_grad()
        F.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
