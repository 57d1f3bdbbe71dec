"""Five steps of the critic for one of the generator; each clears before its own backward."""

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
G = nn.Linear(2, 3)
critic = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
g_opt = torch.optim.RMSprop(G.parameters(), lr=1e-4)
c_opt = torch.optim.RMSprop(critic.parameters(), lr=1e-4)

for turn in range(4):
    for _ in range(5):
        c_opt.zero_grad()
        real, fake = torch.randn(8, 3), G(torch.randn(8, 2)).detach()
        c_loss = critic(fake).mean() - critic(real).mean()
        c_loss.backward()
        c_opt.step()
        for p in critic.parameters():
            p.data.clamp_(-0.1, 0.1)
    g_opt.zero_grad()
    g_loss = -critic(G(torch.randn(8, 2))).mean()
    g_loss.backward()
    g_opt.step()
    print(turn, c_loss.item(), g_loss.item())
