"""backward(inputs=...) leaves the discriminator without gradients of the generator's loss."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

G, D = nn.Linear(4, 6), nn.Linear(6, 1)
oG, oD = torch.optim.Adam(G.parameters(), 2e-4), torch.optim.Adam(D.parameters(), 2e-4)
for epoch in range(3):
    for real in DataLoader(torch.randn(96, 6), 16, shuffle=True):
        fake = G(torch.randn(len(real), 4))
        d = F.softplus(D(fake.detach())).mean() + F.softplus(-D(real)).mean()
        oD.zero_grad()
        d.backward()
        oD.step()
        g = F.softplus(-D(fake)).mean()
        oG.zero_grad()
        g.backward(inputs=list(G.parameters()))
        oG.step()
