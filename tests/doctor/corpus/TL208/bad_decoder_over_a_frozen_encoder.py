"""The second stage of an autoencoder: the encoder is kept, a new decoder is trained."""

import torch
from torch import nn


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(10, 6), nn.BatchNorm1d(6), nn.Tanh())
        self.decoder = nn.Linear(6, 10)

    def forward(self, x):
        return self.decoder(self.encoder(x))


def run(model, parameters, rows, rounds):
    optimizer = torch.optim.Adam(parameters, lr=1e-2)
    for _ in range(rounds):
        model.train()
        for part in rows.split(20):
            error = (model(part) - part).pow(2).mean()
            optimizer.zero_grad()
            error.backward()
            optimizer.step()


torch.manual_seed(0)
rows = torch.randn(100, 10)
first = Autoencoder()
run(first, first.parameters(), rows, 2)
torch.save(first.state_dict(), "stage_one.pt")

second = Autoencoder()
second.load_state_dict(torch.load("stage_one.pt", weights_only=True))
second.encoder.requires_grad_(False)
second.decoder = nn.Linear(6, 10)
optimizer = torch.optim.Adam(second.decoder.parameters(), lr=1e-2)
for epoch in range(2):
    for part in rows.split(20):
        error = (second(part) - part).pow(2).mean()  # <- TL208
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
