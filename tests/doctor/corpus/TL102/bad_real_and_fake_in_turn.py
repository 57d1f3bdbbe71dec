"""A discriminator that steps after the real batch and after the fake one, cleared once."""
import torch
from torch import nn


def train_discriminator(d, optimizer, real, fake, loss):
    d.zero_grad()
    on_real = loss(d(real), torch.ones(len(real), 1))
    on_real.backward()
    optimizer.step()
    on_fake = loss(d(fake), torch.zeros(len(fake), 1))
    on_fake.backward()
    optimizer.step()  # <- TL102
    return on_real.item() + on_fake.item()


torch.manual_seed(0)
d = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
optimizer = torch.optim.Adam(d.parameters(), lr=1e-3)
for real in torch.randn(8, 6, 2):
    print(train_discriminator(d, optimizer, real, torch.randn(6, 2), nn.BCEWithLogitsLoss()))
