import torch
import torch.nn.functional as F
from torch import nn


class Head(nn.Module):
    def __init__(self, trunk, size):
        super().__init__()
        self.trunk, self.top = trunk, nn.Linear(8, size)

    def forward(self, x):
        return self.top(self.trunk(x))


torch.manual_seed(7)
trunk = nn.Sequential(nn.Linear(6, 8), nn.ReLU())
age, smoker = Head(trunk, 1), Head(trunk, 2)
opt_age = torch.optim.Adam(age.parameters(), lr=2e-3)
opt_smoker = torch.optim.Adam(smoker.parameters(), lr=2e-3)  # <- TL311
for _ in range(8):
    x = torch.randn(16, 6)
    opt_age.zero_grad()
    opt_smoker.zero_grad()
    loss = F.mse_loss(age(x), x[:, :1]) + F.cross_entropy(smoker(x), (x[:, 1] > 0).long())
    loss.backward()
    opt_age.step()
    opt_smoker.step()
print(loss.item())
