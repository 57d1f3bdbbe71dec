"""A GAN's encoder is trained with two losses, by an optimizer for each."""

import torch
from torch import nn

torch.manual_seed(0)
encoder, decoder, critic = nn.Linear(6, 2), nn.Linear(2, 6), nn.Linear(2, 1)
opt_restore = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
opt_prior = torch.optim.Adam(encoder.parameters(), lr=1e-4)
opt_critic = torch.optim.Adam(critic.parameters(), lr=1e-3)
bce = nn.BCEWithLogitsLoss()

for _ in range(5):
    x = torch.randn(8, 6)
    opt_restore.zero_grad()
    nn.functional.mse_loss(decoder(encoder(x)), x).backward()
    opt_restore.step()

    opt_critic.zero_grad()
    real = bce(critic(torch.randn(8, 2)), torch.ones(8, 1))
    (real + bce(critic(encoder(x).detach()), torch.zeros(8, 1))).backward()
    opt_critic.step()

    opt_prior.zero_grad()
    bce(critic(encoder(x)), torch.ones(8, 1)).backward()
    opt_prior.step()
