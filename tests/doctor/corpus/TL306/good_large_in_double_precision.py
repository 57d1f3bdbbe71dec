"""Large numbers move where their type, or the learning rate, fits them."""

import torch
from torch import nn

torch.manual_seed(0)


class Line(nn.Module):
    def __init__(self, start, dtype):
        super().__init__()
        self.level = nn.Parameter(torch.tensor(start, dtype=dtype))
        self.slope = nn.Parameter(torch.tensor(4_000.0, dtype=dtype))

    def forward(self, x):
        return self.level + self.slope * x


def fit(dtype, rate):
    x = torch.randn(200, dtype=dtype)
    y = 101_330.0 + 5_000 * x
    model = Line(101_325.0, dtype)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for _ in range(60):
        rows = torch.randint(0, 200, (32,))
        loss = nn.functional.l1_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(dtype, loss.item())


fit(torch.float64, 2e-3)
fit(torch.float32, 0.05)
