import torch
from torch import nn

torch.manual_seed(0)
G, D = nn.Linear(3, 2), nn.Linear(2, 1)
opt_g = torch.optim.Adam(G.parameters(), lr=2e-4)
opt_d = torch.optim.Adam(D.parameters(), lr=2e-4)
bce = nn.BCEWithLogitsLoss()


def requires_grad(model, flag=True):
    for p in model.parameters():
        p.requires_grad = flag


for _ in range(4):
    requires_grad(G, False)
    requires_grad(D, True)
    fake = G(torch.randn(8, 3))
    opt_d.zero_grad()
    (bce(D(torch.randn(8, 2)), torch.ones(8, 1)) + bce(D(fake), torch.zeros(8, 1))).backward()
    opt_d.step()

    requires_grad(G, True)
    requires_grad(D, False)
    opt_g.zero_grad()
    bce(D(G(torch.randn(8, 3))), torch.ones(8, 1)).backward()
    opt_g.step()
