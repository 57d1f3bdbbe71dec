"""Where a few points lie is noted after every update, with the graphs of all these calls."""

import torch
from torch import nn


class Drift:
    def __init__(self, points):
        self.points, self.places = points, []

    def note(self, encoder):
        self.places.append(encoder(self.points))  # <- TL204

    def moved(self):
        return (self.places[0] - self.places[-1]).norm().item()


def main():
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))
    optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3)
    margin = nn.TripletMarginLoss()
    drift = Drift(torch.randn(40, 6))
    for step in range(60):
        anchor = torch.randn(24, 6)
        loss = margin(encoder(anchor), encoder(anchor + 0.1), encoder(torch.randn(24, 6)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        drift.note(encoder)
    print(drift.moved())


main()
