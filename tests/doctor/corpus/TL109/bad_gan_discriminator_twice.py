import itertools

import torch
import torch.nn as nn

torch.manual_seed(1)
latent = 4
G = nn.Sequential(nn.Linear(latent, 16), nn.ReLU(), nn.Linear(16, 2))
D = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
bce = nn.BCEWithLogitsLoss()
opt_g = torch.optim.Adam(G.parameters(), lr=2e-4, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(D.parameters(), lr=2e-4, betas=(0.5, 0.999))


def real_batches():
    while True:
        yield torch.randn(8, 2) * 0.5 + 2


for step, real in enumerate(itertools.islice(real_batches(), 6)):
    ones, zeros = torch.ones(8, 1), torch.zeros(8, 1)
    fake = G(torch.randn(8, latent))

    opt_d.zero_grad()
    d_loss = bce(D(real), ones) + bce(D(fake.detach()), zeros)
    d_loss.backward()
    opt_d.step()

    opt_g.zero_grad()
    g_loss = bce(D(G(torch.randn(8, latent))), ones)
    g_loss.backward()
    opt_g.step()
    opt_g.step()  # <- TL109
    print(step, d_loss.item(), g_loss.item())
