import torch
from torch import autograd, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(32, 6)), batch_size=8, shuffle=True)
netG, netD = nn.Linear(3, 6), nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
optG = torch.optim.Adam(netG.parameters(), lr=1e-3)
optD = torch.optim.Adam(netD.parameters(), lr=1e-3)

for epoch in range(2):
    for (real,) in loader:
        real = real.requires_grad_()
        score = netD(real)
        fake = netG(torch.randn(real.shape[0], 3))
        d_loss = F.softplus(-score).mean() + F.softplus(netD(fake.detach())).mean()
        (grad_real,) = autograd.grad(score.sum(), real, retain_graph=True)  # <- TL410
        r1 = grad_real.pow(2).sum(dim=1).mean()
        d_loss += 5.0 * r1
        optD.zero_grad()
        d_loss.backward()
        optD.step()
        optG.zero_grad()
        F.softplus(-netD(fake)).mean().backward()
        optG.step()
