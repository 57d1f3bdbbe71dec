from collections import defaultdict

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class VAE(nn.Module):
    def __init__(self, dim=12, latent=4):
        super().__init__()
        self.enc = nn.Linear(dim, 2 * latent)
        self.dec = nn.Linear(latent, dim)

    def forward(self, x):
        mu, logvar = self.enc(x).chunk(2, dim=-1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.dec(z), mu, logvar


class VAETrainer:
    def __init__(self, model, lr):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.metrics = defaultdict(list)

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            for (x,) in loader:
                recon, mu, logvar = self.model(x)
                recon_loss = (recon - x).pow(2).sum(1).mean()
                kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
                loss = recon_loss + 0.1 * kl
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.metrics["loss"].append(loss.item())
                self.metrics["kl"].append(kl)  # <- TL204
            print(epoch, self.metrics["loss"][-1], float(self.metrics["kl"][-1]))


torch.manual_seed(0)
VAETrainer(VAE(), lr=1e-3).fit(
    DataLoader(TensorDataset(torch.randn(64, 12)), batch_size=16, shuffle=True), epochs=2
)
