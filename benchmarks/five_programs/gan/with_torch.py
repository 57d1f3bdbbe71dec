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
from torch.utils.data import DataLoader

EPOCHS = 20

torch.manual_seed(0)
train = DataLoader(ring(640, seed=0), batch_size=64, shuffle=True)
model, discriminator = Generator(), Discriminator()
g_optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, betas=(0.0, 0.99))
d_optimizer = torch.optim.Adam(discriminator.parameters(), lr=6e-3, betas=(0.0, 0.99))

for _ in range(EPOCHS):
    for real in train:
        fake = model(torch.randn(len(real), LATENT))
        d_optimizer.zero_grad()
        real_or_fake_loss(discriminator(real), discriminator(fake.detach())).backward()
        d_optimizer.step()
        g_optimizer.zero_grad()
        fooling_loss(discriminator(fake)).backward()
        g_optimizer.step()
result = {"radius": mean_radius(model)}
