"""Data that is computed from tensors of known sizes; a loss of two parts, of the user's."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Auto(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = nn.Linear(12, 4), nn.Linear(4, 12)

    def forward(self, x):
        code = torch.tanh(self.enc(x))
        return self.dec(code), code


def objective(rebuilt, x, code):
    return nn.functional.mse_loss(rebuilt, x, reduction="sum") / len(x) + code.abs().sum(1).mean()


def main(accum=4, epochs=3):
    basis = torch.randn(3, 12)
    x = torch.randn(100, 3) @ basis + 0.1 * torch.randn(100, 12)
    loader = DataLoader(TensorDataset(x), batch_size=10, shuffle=True)
    model = Auto()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(epochs):
        for i, (xb,) in enumerate(loader):
            rebuilt, code = model(xb)
            (objective(rebuilt, xb, code) / accum).backward()
            if (i + 1) % accum == 0:
                opt.step()  # <- TL506
                opt.zero_grad()


main()
