import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
maker = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
critic = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))
maker_optimizer = torch.optim.Adam(maker.parameters(), lr=1e-3)
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)  # <- TL106

for step in range(40):
    real, fake = torch.randn(32, 2) + 3, maker(torch.randn(32, 4))
    if step % 2 == 0:
        loss = -critic(fake).mean()
        maker_optimizer.zero_grad()
        loss.backward()
        maker_optimizer.step()
    else:
        gap = F.relu(1 - critic(real)).mean() + F.relu(1 + critic(fake.detach())).mean()
        print(step, "critic", gap.item())
