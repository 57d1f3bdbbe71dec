import torch
from torch import nn


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Conv1d(1, 4, 3)

    def forward(self, x):
        h = torch.relu(self.body(x.unsqueeze(1)))
        return nn.Conv1d(4, 1, 2)(h).mean((1, 2))  # <- TL308


torch.manual_seed(0)
G, D = nn.Linear(3, 6), Critic()
opt_g, opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
for _ in range(4):
    opt_d.zero_grad()
    (D(G(torch.randn(8, 3)).detach()).mean() - D(torch.randn(8, 6)).mean()).backward()
    opt_d.step()
    opt_g.zero_grad()
    (-D(G(torch.randn(8, 3))).mean()).backward()
    opt_g.step()
