"""A class that others import embeds rows part by part, without graphs; the one for a search by
gradients hands its graph on."""

import torch
from torch import nn


def encoder():
    return nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.1), nn.Tanh(), nn.Linear(16, 4))


class Embedder:
    def __init__(self, file):
        self.encoder = encoder()
        self.encoder.load_state_dict(torch.load(file, weights_only=True))
        self.encoder.eval()

    @torch.no_grad()
    def embed(self, rows, size=32):
        parts = [rows[begin : begin + size] for begin in range(0, len(rows), size)]
        return torch.cat([self.encoder(part).detach() for part in parts])

    def nearest(self, rows, wanted, size=32):
        slopes = []
        for begin in range(0, len(rows), size):
            part = rows[begin : begin + size].requires_grad_()
            distance = (self.encoder(part) - wanted).pow(2).sum(dim=1)
            print(distance.detach().min())
            slopes.append(torch.autograd.grad(distance.sum(), part)[0])
        return torch.cat(slopes)


class Features:
    """Those of a frozen network."""

    def __init__(self, file):
        self.encoder = encoder()
        self.encoder.load_state_dict(torch.load(file, weights_only=True))
        self.encoder.requires_grad_(False)
        self.encoder.eval()

    def of(self, rows, size=32):
        found = []
        for begin in range(0, len(rows), size):
            found.append(self.encoder(rows[begin : begin + size]).detach())
        return torch.cat(found)
