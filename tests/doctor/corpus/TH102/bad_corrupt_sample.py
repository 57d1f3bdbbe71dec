"""One target in thousands lacks its decimal point, and nothing holds its gradient back."""

import torch
import torch.nn.functional as F
from torch import nn


def batches(count, generator):
    weights = torch.randn(6, 1, generator=generator)
    for i in range(count):
        x = torch.randn(16, 6, generator=generator)
        y = x @ weights + 0.1 * torch.randn(16, 1, generator=generator)
        if i == 170:
            y[3] *= 1e5
        yield x, y


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    for x, y in batches(240, torch.Generator().manual_seed(1)):
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # <- TH102
    print(loss.item())


if __name__ == "__main__":
    main()
