"""Gradients arrive where they are not meant to stay: at the critic while the generator learns, at
a network that is only attacked, at weights that are updated by hand."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
real = torch.randn(96, 5) * 2 + 1
loader = DataLoader(TensorDataset(real), batch_size=16, shuffle=True)
generator = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 5))
critic = nn.Sequential(nn.Linear(5, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3)

# The generator warms up alone; the optimizer of the critic is made when the game begins.
for (x,) in loader:
    opt_g.zero_grad()
    loss = F.mse_loss(generator(torch.randn(len(x), 3)), x)
    loss.backward()
    opt_g.step()

opt_c = torch.optim.Adam(critic.parameters(), lr=1e-3)
for epoch in range(2):
    for (x,) in loader:
        opt_c.zero_grad()
        fake = generator(torch.randn(len(x), 3))
        loss = F.softplus(critic(fake.detach())).mean() + F.softplus(-critic(x)).mean()
        loss.backward()
        opt_c.step()
        opt_g.zero_grad()
        F.softplus(-critic(fake)).mean().backward()
        opt_g.step()

# A patch that fools a network: its own parameters get gradients too.
victim = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2))
patch = torch.zeros(5, requires_grad=True)
opt_patch = torch.optim.Adam([patch], lr=0.1)
for (x,) in loader:
    opt_patch.zero_grad()
    F.cross_entropy(victim(x + patch), torch.ones(len(x), dtype=torch.long)).backward()
    opt_patch.step()

# One part has an optimizer, the other is updated by hand.
body, head = nn.Linear(5, 16), nn.Linear(16, 1)
opt_body = torch.optim.SGD(body.parameters(), lr=0.01)
for epoch in range(2):
    for (x,) in loader:
        opt_body.zero_grad()
        head.zero_grad()
        loss = F.mse_loss(head(body(x).relu()), x.sum(1, keepdim=True))
        loss.backward()
        opt_body.step()
        with torch.no_grad():
            for p in head.parameters():
                p -= 0.01 * p.grad
    print(epoch, loss.item())
