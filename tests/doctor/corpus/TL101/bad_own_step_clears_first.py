"""An optimizer of the user's own clears what the closure has computed, and steps then."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X = torch.randn(96, 6)
Y = (X.sum(1) > 0).long()
loader = DataLoader(TensorDataset(X, Y), batch_size=16, shuffle=True)


class Bad(torch.optim.SGD):
    def step(self, closure):
        with torch.enable_grad():
            loss = closure()
        self.zero_grad()  # <- TL101
        super().step()
        return loss


model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
opt = Bad(model.parameters(), lr=0.1)
for epoch in range(4):
    for x, y in loader:

        def closure():
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            return loss

        opt.step(closure)
