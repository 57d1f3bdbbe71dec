import torch
from torch import nn


class GAN:
    def __init__(self, latent=4):
        self.latent = latent
        self.generator = nn.Sequential(nn.Linear(latent, 16), nn.ReLU(), nn.Linear(16, 2))
        self.critic = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
        self.opt_g = torch.optim.Adam(self.generator.parameters(), lr=2e-4)
        self.opt_c = torch.optim.Adam(self.critic.parameters(), lr=2e-4)
        self.loss = nn.BCEWithLogitsLoss()

    def noise(self, n):
        return torch.randn(n, self.latent)

    def train_critic(self, real):
        n = len(real)
        fake = self.generator(self.noise(n)).detach()
        loss = self.loss(self.critic(real), torch.ones(n, 1))
        loss = loss + self.loss(self.critic(fake), torch.zeros(n, 1))
        self.opt_c.zero_grad()
        loss.backward()
        self.opt_c.step()
        return loss.item()

    def train_generator(self, n):
        loss = self.loss(self.critic(self.generator(self.noise(n))), torch.ones(n, 1))
        self.opt_g.zero_grad()
        self.opt_g.step()  # <- TL108
        return loss.item()

    def fit(self, data, epochs=2):
        for _ in range(epochs):
            for real in data.split(8):
                c, g = self.train_critic(real), self.train_generator(len(real))
            print(c, g)


torch.manual_seed(0)
GAN().fit(torch.randn(32, 2) + 3)
