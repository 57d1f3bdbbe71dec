import torch
from shared import (
    LATENT,
    Discriminator,
    Generator,
    fooling_loss,
    mean_radius,
    real_or_fake_loss,
    ring,
)

import trueloop

EPOCHS = 20

torch.manual_seed(0)
train = trueloop.Feed(ring(640, seed=0), 64, shuffle=True)
model, discriminator = Generator(), Discriminator()
g_optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, betas=(0.0, 0.99))
d_optimizer = torch.optim.Adam(discriminator.parameters(), lr=6e-3, betas=(0.0, 0.99))


def d_loss(discriminator, batch):
    real, fake = batch
    return real_or_fake_loss(discriminator(real), discriminator(fake))


g_step = trueloop.Step(model, g_optimizer, lambda _, fake: fooling_loss(discriminator(fake)))
d_step = trueloop.Step(discriminator, d_optimizer, d_loss)

for real in trueloop.batches(d_step, train, epochs=EPOCHS):
    fake = model(torch.randn(len(real), LATENT))
    d_step((real, fake.detach()))
    g_step(fake)
result = {"radius": mean_radius(model)}
