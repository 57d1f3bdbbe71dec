"""The tensor is moved, then made a parameter; the module is moved as a whole."""

import torch
import torch.nn as nn

device = torch.device("cpu")


class Affine(nn.Module):
    def __init__(self, dim, device):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(dim).to(device))
        self.shift = nn.Parameter(torch.zeros(dim, device=device))
        self.fixed = nn.Parameter(torch.eye(dim), requires_grad=False).requires_grad_(False)
        self.register_buffer("mean", torch.zeros(dim).to(device))
        self.temperature = torch.tensor(2.0).to(device)

    def forward(self, x):
        return ((x - self.mean) @ self.fixed) * self.scale / self.temperature + self.shift


torch.manual_seed(0)
model = Affine(5, device).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
x = torch.randn(50, 5)
y = 3 * x + 1
for step in range(20):
    optimizer.zero_grad()
    loss = (model(x) - y).abs().mean()
    loss.backward()
    optimizer.step()
print(loss.item())
