"""A generator and a discriminator: neither loss is a measure of progress."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
real = torch.randn(960, 2) * torch.tensor([3.0, 0.1]) + 5
generator = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
critic = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
opt_g = torch.optim.Adam(generator.parameters(), lr=2e-2, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(critic.parameters(), lr=2e-2, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
for epoch in range(8):
    for (batch,) in DataLoader(TensorDataset(real), batch_size=32, shuffle=True):
        fake = generator(torch.randn(len(batch), 4))
        ones, zeros = torch.ones(len(batch), 1), torch.zeros(len(batch), 1)
        opt_d.zero_grad()
        loss_d = bce(critic(batch), ones) + bce(critic(fake.detach()), zeros)
        loss_d.backward()
        opt_d.step()
        opt_g.zero_grad()
        loss_g = bce(critic(fake), ones)
        loss_g.backward()
        opt_g.step()
    print(epoch, loss_d.item(), loss_g.item())
