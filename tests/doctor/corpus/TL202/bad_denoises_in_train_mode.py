"""A picture is denoised step by step in the middle of the training."""

import torch
from torch import nn
from torch.nn import functional as F

STEPS = 6
betas = torch.linspace(1e-4, 0.2, STEPS)
kept = torch.cumprod(1 - betas, 0)


class Denoiser(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(width + 1, 16), nn.BatchNorm1d(16), nn.SiLU())
        self.outer = nn.Linear(16, width)

    def forward(self, x, t):
        return self.outer(self.inner(torch.cat([x, t[:, None].float()], dim=1)))


class Trainer:
    def __init__(self, net):
        self.net = net
        self.optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

    def update(self, x):
        t = torch.randint(STEPS, (len(x),))
        noise = torch.randn_like(x)
        share = kept[t][:, None]
        loss = F.mse_loss(self.net(x * share.sqrt() + noise * (1 - share).sqrt(), t), noise)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def denoised(self, x, step):
        t = torch.full((len(x),), step)
        noise = self.net(x, t) * betas[step] / (1 - kept[step]).sqrt()
        return (x - noise) / (1 - betas[step]).sqrt()

    @torch.inference_mode()
    def sample(self, count):
        x = torch.randn(count, 8)
        for step in reversed(range(STEPS)):
            x = self.denoised(x, step)
        return x

    def run(self, updates):
        for number in range(1, updates + 1):
            self.update(torch.randn(8, 8))
            if number % 4 == 0:
                print(self.sample(2).norm().item())  # <- TL202


torch.manual_seed(0)
Trainer(Denoiser()).run(12)
