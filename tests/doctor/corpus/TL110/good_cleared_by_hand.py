import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
G = nn.Linear(2, 3)
D = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
opts = {
    "G": torch.optim.Adam(G.parameters(), lr=1e-3),
    "D": torch.optim.Adam(D.parameters(), lr=1e-3),
}
hinge = nn.functional.relu


def clear(module):
    for p in module.parameters():
        p.grad = None


for i in range(8):
    real, z = torch.randn(8, 3), torch.randn(8, 2)
    clear(G)
    loss_g = -D(G(z)).mean()
    loss_g.backward()
    opts["G"].step()
    clear(D)
    loss_d = hinge(1 - D(real)).mean() + hinge(1 + D(G(z).detach())).mean()
    loss_d.backward()
    opts["D"].step()
    print(i, loss_g.item(), loss_d.item())
