import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
G = nn.Linear(2, 3)
D = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
opt_g = torch.optim.Adam(G.parameters(), lr=1e-3)
opt_d = torch.optim.Adam(D.parameters(), lr=1e-3)
bce = nn.functional.binary_cross_entropy_with_logits

for i in range(8):
    real, z = torch.randn(8, 3), torch.randn(8, 2)
    opt_d.zero_grad()
    opt_g.zero_grad()
    D.requires_grad_(False)
    g_loss = bce(D(G(z)), torch.ones(8, 1))
    g_loss.backward()
    opt_g.step()
    D.requires_grad_(True)
    d_loss = bce(D(real), torch.ones(8, 1)) + bce(D(G(z).detach()), torch.zeros(8, 1))
    d_loss.backward()
    opt_d.step()
    print(i, g_loss.item(), d_loss.item())
