"""The same with two Steps: each has its own optimizer, and neither uses the other's gradients."""

import torch
from data import ring
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce

import trueloop

EPOCHS, LATENT = 25, 8

torch.manual_seed(0)
train = trueloop.Feed(ring(640, seed=0), 64, shuffle=True)
generator = nn.Sequential(
    nn.Linear(LATENT, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2)
)
discriminator = nn.Sequential(
    nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1)
)
g_optimizer = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.0, 0.99))
d_optimizer = torch.optim.Adam(discriminator.parameters(), lr=6e-3, betas=(0.0, 0.99))


def d_loss(discriminator: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    real, noise = batch
    with torch.no_grad():
        fake = generator(noise)
    on_real, on_fake = discriminator(real), discriminator(fake)
    return bce(on_real, torch.ones_like(on_real)) + bce(on_fake, torch.zeros_like(on_fake))


def g_loss(generator: nn.Module, noise: Tensor) -> Tensor:
    on_fake = discriminator(generator(noise))
    return bce(on_fake, torch.ones_like(on_fake))


d_step = trueloop.Step(discriminator, d_optimizer, d_loss)
g_step = trueloop.Step(generator, g_optimizer, g_loss)

for real in trueloop.batches(d_step, train, epochs=EPOCHS):
    noise = torch.randn(len(real), LATENT)
    d_step((real, noise))
    g_step(noise)

with torch.inference_mode():
    radius = generator(torch.randn(1000, LATENT)).norm(dim=1)
print(f"radius {radius.mean():.4f} ± {radius.std():.4f}")
