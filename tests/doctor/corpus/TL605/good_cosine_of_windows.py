"""A generator hands out pieces of a permutation; the cosine is made for the windows of them."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=6)
parser.add_argument("--size", type=int, default=12)
parser.add_argument("--window", type=int, default=2)
settings = parser.parse_args([])


def pieces(rows, size):
    for chosen in torch.randperm(len(rows)).split(size):
        yield rows[chosen]


torch.manual_seed(9)
waves = torch.sin(torch.rand(240, 1) * 6 + torch.linspace(0, 6, 24))
per_epoch = len(waves) // settings.size
net = nn.Sequential(nn.Linear(24, 8), nn.ReLU(), nn.Linear(8, 24))
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
cosine = torch.optim.lr_scheduler.CosineAnnealingLR(
    optimizer, T_max=settings.epochs * (per_epoch // settings.window)
)
for epoch in range(settings.epochs):
    for number, clean in enumerate(pieces(waves, settings.size)):
        noisy = clean + 0.1 * torch.randn_like(clean)
        loss = nn.functional.mse_loss(net(noisy), clean)
        (loss / settings.window).backward()
        if (number + 1) % settings.window == 0:
            optimizer.step()
            cosine.step()
            optimizer.zero_grad()
    print(epoch, round(loss.item(), 4), cosine.get_last_lr()[0])
