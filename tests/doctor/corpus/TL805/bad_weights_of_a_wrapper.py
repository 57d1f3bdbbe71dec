"""A wrapper hands out what its network holds; the caller keeps it for the lowest error so far."""

import torch
from torch import nn

torch.manual_seed(0)


class Forecaster:
    def __init__(self, width):
        self.network = nn.Sequential(nn.Linear(5, width), nn.Tanh(), nn.Linear(width, 1))

    def weights(self):
        return self.network.state_dict()  # <- TL805

    def restore(self, weights):
        self.network.load_state_dict(weights)


def one_round(forecaster, optimizer, x, y):
    forecaster.network.train()
    for rows in torch.randperm(len(x)).split(20):
        loss = nn.functional.mse_loss(forecaster.network(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def search(forecaster, learn, check, rounds):
    optimizer = torch.optim.Adam(forecaster.network.parameters(), lr=0.02)
    lowest, chosen = float("inf"), None
    for _ in range(rounds):
        one_round(forecaster, optimizer, *learn)
        forecaster.network.eval()
        with torch.no_grad():
            error = nn.functional.mse_loss(forecaster.network(check[0]), check[1]).item()
        if error < lowest:
            lowest = error
            chosen = forecaster.weights()
    if chosen is not None:
        forecaster.restore(chosen)
    return lowest


x = torch.randn(60, 5)
y = x[:, :1] + 0.5 * torch.randn(60, 1)
print(search(Forecaster(32), (x[:40], y[:40]), (x[40:], y[40:]), 40))
