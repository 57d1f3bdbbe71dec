"""The share of clicks of each advertiser, over all visits, becomes an input."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def visits(count, rng):
    advertiser = rng.integers(0, 80, count)
    length = rng.exponential(size=count)
    return advertiser, length, (rng.uniform(size=count) < 0.3).astype(np.float32)


def as_rates(groups, outcome):
    rates = {}
    for group in set(groups.tolist()):
        chosen = groups == group
        rates[group] = np.mean(outcome[chosen])
    return np.array([rates[group] for group in groups.tolist()])


class Clicks(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, x):
        return self.layers(x).squeeze(1)


def main():
    torch.manual_seed(17)
    advertiser, length, click = visits(900, np.random.default_rng(17))
    rate = as_rates(advertiser, click)  # <- TL706
    x = np.stack([rate, np.log1p(length)], axis=1).astype(np.float32)
    cut = 700
    train = TensorDataset(torch.tensor(x[:cut]), torch.tensor(click[:cut]))
    later_x, later_click = torch.tensor(x[cut:]), torch.tensor(click[cut:])
    model = Clicks()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(3):
        for inputs, clicked in DataLoader(train, batch_size=70, shuffle=True):
            optimizer.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(model(inputs), clicked)
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        print(((model(later_x) > 0) == (later_click > 0.5)).float().mean().item())


main()
