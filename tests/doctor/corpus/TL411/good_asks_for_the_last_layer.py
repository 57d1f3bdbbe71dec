"""Networks of other runs end in a sigmoid: each kind has a middle of its own."""

import os

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 16), nn.ReLU())
        self.out = nn.Linear(16, 1)

    def forward(self, x):
        return self.out(self.body(x))


@torch.no_grad()
def correct(model, x, y, threshold=0.5):
    model.eval()
    output = model(x)
    if os.environ.get("NETWORK", "").endswith("sigmoid"):
        predicted = output > threshold
    else:
        predicted = torch.sigmoid(output) > threshold
    return (predicted == y.bool()).float().mean().item()


torch.manual_seed(0)
model = Net()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(150):
    x = torch.randn(32, 6)
    y = (x.sum(1, keepdim=True) > 0).float()
    model.train()
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(step, loss.item(), correct(model, x, y))
