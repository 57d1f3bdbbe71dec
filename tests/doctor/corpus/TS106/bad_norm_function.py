import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def gradient_norm(parameters):
    return math.sqrt(sum(float(torch.norm(p.grad)) ** 2 for p in parameters))  # <- TS106


class Residual(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x).relu()
        return x


def main():
    torch.manual_seed(0)
    model = Residual(16, 20)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    largest = 0.0
    for _ in range(120):
        x = torch.randn(12, 16)
        loss = F.mse_loss(model(x), x.flip(1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        largest = max(largest, gradient_norm(model.parameters()))
    print(loss.item(), largest)


if __name__ == "__main__":
    main()
