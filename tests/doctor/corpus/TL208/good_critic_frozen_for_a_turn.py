"""A GAN that goes on from a checkpoint: the critic is frozen only while the generator learns."""

import torch
from torch import nn

torch.manual_seed(0)
G = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
D = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
torch.save({"g": G.state_dict(), "d": D.state_dict()}, "gan.pt")
saved = torch.load("gan.pt", weights_only=True)
G.load_state_dict(saved["g"])
D.load_state_dict(saved["d"])
opt_g = torch.optim.Adam(G.parameters(), lr=2e-4)
opt_d = torch.optim.Adam(D.parameters(), lr=2e-4)
bce = nn.BCEWithLogitsLoss()
for step in range(12):
    real, noise = torch.randn(8, 2) + 2, torch.randn(8, 3)
    D.requires_grad_(True)
    with torch.no_grad():
        fake = G(noise)
    opt_d.zero_grad()
    (bce(D(real), torch.ones(8, 1)) + bce(D(fake), torch.zeros(8, 1))).backward()
    opt_d.step()
    D.requires_grad_(False)
    opt_g.zero_grad()
    bce(D(G(noise)), torch.ones(8, 1)).backward()
    opt_g.step()
