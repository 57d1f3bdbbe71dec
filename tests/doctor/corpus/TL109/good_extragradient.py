"""An extrapolation by hand, a second backward, and the step from the copies."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader


class ExtraAdam(torch.optim.Adam):
    def __init__(self, *a, **k):
        super().__init__(*a, **k)
        self.copies = []

    @torch.no_grad()
    def extrapolation(self):
        self.copies = [p.detach().clone() for g in self.param_groups for p in g["params"]]
        for g in self.param_groups:
            for p in g["params"]:
                p.sub_(g["lr"] * p.grad)

    def step(self, closure=None):
        with torch.no_grad():
            for p, c in zip((p for g in self.param_groups for p in g["params"]), self.copies):
                p.copy_(c)
        return super().step(closure)


G, D = nn.Linear(4, 6), nn.Linear(6, 1)
og, od = ExtraAdam(G.parameters(), 1e-3), ExtraAdam(D.parameters(), 1e-3)


def grads(real):
    fake = G(torch.randn(len(real), 4))
    og.zero_grad()
    (-D(fake).mean()).backward()
    od.zero_grad()
    (D(fake.detach()).mean() - D(real).mean()).backward()


for real in DataLoader(torch.randn(480, 6), 16, shuffle=True):
    grads(real)
    og.extrapolation()
    od.extrapolation()
    grads(real)
    og.step()
    od.step()
