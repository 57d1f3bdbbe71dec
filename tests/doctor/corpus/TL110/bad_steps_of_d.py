"""The generator is trained every second turn; the discriminator is cleared at the turn's top."""

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
G = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))
D = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
g_opt = torch.optim.AdamW(G.parameters(), lr=1e-3)
d_opt = torch.optim.AdamW(D.parameters(), lr=1e-3)
softplus = nn.functional.softplus

for iteration in range(12):
    batch = torch.randn(16, 2).abs()
    noise = torch.randn(16, 2)
    d_opt.zero_grad(set_to_none=True)
    g_opt.zero_grad(set_to_none=True)
    g_loss = softplus(-D(G(noise))).mean()
    g_loss.backward()
    g_opt.step()
    d_loss = softplus(-D(batch)).mean() + softplus(D(G(noise).detach())).mean()
    d_loss.backward()  # <- TL110
    d_opt.step()
    if iteration % 4 == 0:
        print(iteration, d_loss.item(), g_loss.item())
