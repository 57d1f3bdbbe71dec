"""A small GAN: two networks, two optimizers, real and fake losses."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

latent_dim = 4
n_epochs = 3
torch.manual_seed(0)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(latent_dim, 16), nn.LeakyReLU(0.2), nn.Linear(16, 2))

    def forward(self, z):
        return self.model(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(
            nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1), nn.Sigmoid()
        )

    def forward(self, points):
        return self.model(points)


adversarial_loss = nn.BCELoss()
generator = Generator()
discriminator = Discriminator()
points = torch.randn(64, 2) * 0.3 + 1.0
dataloader = DataLoader(TensorDataset(points), batch_size=16, shuffle=True)
optimizer_G = torch.optim.Adam(generator.parameters(), lr=0.002, betas=(0.5, 0.999))
optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=0.002, betas=(0.5, 0.999))

for epoch in range(n_epochs):
    for i, (real,) in enumerate(dataloader):
        valid = torch.ones(real.size(0), 1)
        fake = torch.zeros(real.size(0), 1)

        # -----------------
        #  Train Generator
        # -----------------
        optimizer_G.zero_grad()
        z = torch.randn(real.size(0), latent_dim)
        gen = generator(z)
        g_loss = adversarial_loss(discriminator(gen), valid)
        g_loss.backward()
        optimizer_G.step()

        # ---------------------
        #  Train Discriminator
        # ---------------------
        optimizer_D.zero_grad()
        real_loss = adversarial_loss(discriminator(real), valid)
        fake_loss = adversarial_loss(discriminator(gen.detach()), fake)
        d_loss = (real_loss + fake_loss) / 2
        d_loss.backward()
        optimizer_D.step()

        print(f"[Epoch {epoch}] [Batch {i}] [D: {d_loss.item():f}] [G: {g_loss.item():f}]")
