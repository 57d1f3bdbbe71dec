# With `--fit`, the default, it trains; the score after every fifth batch leaves eval mode on.
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--fit", type=int, default=1)
options = parser.parse_args()

torch.manual_seed(11)
signal = torch.randn(150, 8)
level = signal[:, :1] - signal[:, 1:2]
known = DataLoader(TensorDataset(signal[:120], level[:120]), batch_size=8, shuffle=True)
unknown = DataLoader(TensorDataset(signal[120:], level[120:]), batch_size=10)
regressor = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Dropout(0.3), nn.Linear(32, 1))


def score():
    regressor.eval()
    with torch.no_grad():
        errors = [(regressor(a) - b).abs().mean().item() for a, b in unknown]
    return sum(errors) / len(errors)


if options.fit:
    adam = torch.optim.Adam(regressor.parameters(), lr=1e-3)
    for epoch in range(2):
        regressor.train()
        for i, (a, b) in enumerate(known):
            adam.zero_grad()
            nn.functional.mse_loss(regressor(a), b).backward()  # <- TL201
            adam.step()
            if i % 5 == 4:
                print(epoch, i, score())
print(score())
