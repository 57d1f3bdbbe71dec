"""A GAN in which the generator comes first: what its loss leaves in the critic is cleared."""
import torch
from torch import nn

torch.manual_seed(0)
g, d = nn.Linear(3, 2), nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
opt_g, opt_d = torch.optim.Adam(g.parameters()), torch.optim.Adam(d.parameters())
bce = nn.BCEWithLogitsLoss()
for real in torch.randn(6, 8, 2):
    fake = g(torch.randn(8, 3))
    opt_g.zero_grad()
    bce(d(fake), torch.ones(8, 1)).backward()
    opt_g.step()
    opt_d.zero_grad()
    loss = bce(d(real), torch.ones(8, 1)) + bce(d(fake.detach()), torch.zeros(8, 1))
    loss.backward()
    opt_d.step()
print(loss.item())
