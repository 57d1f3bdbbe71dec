"""Rprop holds an update back where a gradient changes its sign; a temperature stays at its bound;
and a group whose rate is zero is held on purpose."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.randn(64, 5)
y = x @ torch.randn(5, 1)

linear = nn.Linear(5, 1)
optimizer = torch.optim.Rprop(linear.parameters(), lr=0.01)
for step in range(40):
    optimizer.zero_grad()
    F.mse_loss(linear(x), y).backward()
    optimizer.step()


class Matching(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(5, 8), nn.Linear(5, 8)
        self.log_scale = nn.Parameter(torch.tensor(4.6))

    def forward(self, x):
        left, right = F.normalize(self.left(x), dim=-1), F.normalize(self.right(x), dim=-1)
        return self.log_scale.exp() * left @ right.T


model = Matching()
slow = torch.optim.Adam(
    [{"params": [*model.left.parameters(), model.log_scale]},
     {"params": model.right.parameters(), "lr": 0.0}], lr=1e-3,
)  # fmt: skip
for step in range(40):
    slow.zero_grad()
    loss = F.cross_entropy(model(x), torch.arange(64))
    loss.backward()
    slow.step()
    with torch.no_grad():
        model.log_scale.clamp_(4.6, 4.6)
print(loss.item())
