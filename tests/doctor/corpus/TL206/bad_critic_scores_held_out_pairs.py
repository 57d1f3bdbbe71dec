"""The critic is also evaluated, and its dropout stays on there: its scores change from pass to
pass."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(6, 16), nn.Linear(16, 1)

    def forward(self, x):
        x = F.dropout(F.relu(self.inner(x)), 0.3)  # <- TL206
        return self.outer(x)


def score(critic, loader):
    critic.eval()
    right = 0
    with torch.no_grad():
        for x, y in loader:
            right += ((critic(x) > 0).float() == y).sum().item()
    critic.train()
    return right / len(loader.dataset)


torch.manual_seed(0)
x = torch.randn(400, 6)
y = (x[:, :1] * x[:, 1:2] > 0).float()
loader = DataLoader(TensorDataset(x[:320], y[:320]), batch_size=16, shuffle=True)
held = DataLoader(TensorDataset(x[320:], y[320:]), batch_size=16)
critic = Critic()
optimizer = torch.optim.Adam(critic.parameters(), lr=1e-2)
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        F.binary_cross_entropy_with_logits(critic(x), y).backward()
        optimizer.step()
    print(epoch, score(critic, held))
