"""The critic is frozen for the generator's step, once and for all."""

import torch
from torch import nn

torch.manual_seed(0)
G, D = nn.Linear(3, 2), nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
for p in D.parameters():
    p.requires_grad_(False)
opt_g = torch.optim.Adam(G.parameters(), lr=2e-4)
opt_d = torch.optim.Adam(D.parameters(), lr=2e-4)  # <- TL309
bce = nn.BCEWithLogitsLoss()

for step in range(5):
    fake = G(torch.randn(8, 3))
    opt_d.zero_grad()
    d_loss = bce(D(torch.randn(8, 2) + 2), torch.ones(8, 1)) + bce(D(fake), torch.zeros(8, 1))
    d_loss.backward(retain_graph=True)
    opt_d.step()
    opt_g.zero_grad()
    bce(D(fake), torch.ones(8, 1)).backward()
    opt_g.step()
