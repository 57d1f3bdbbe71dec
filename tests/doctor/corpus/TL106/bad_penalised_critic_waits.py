"""The critic's loss has a penalty on the gradient of its inputs, and no step comes after it."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 3))
critic = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
g_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3)
d_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)
for (real,) in DataLoader(TensorDataset(torch.randn(32, 3)), batch_size=8, shuffle=True):
    real.requires_grad_()
    score = critic(real)
    (slope,) = torch.autograd.grad(score.sum(), real, create_graph=True)
    fake = generator(torch.randn(8, 2))
    d_loss = critic(fake.detach()).mean() - score.mean() + slope.pow(2).sum(1).mean()
    d_optimizer.zero_grad()
    d_loss.backward()  # <- TL106

    g_optimizer.zero_grad()
    (-critic(fake).mean()).backward()
    g_optimizer.step()
