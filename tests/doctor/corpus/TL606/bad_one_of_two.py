"""GAN with a schedule for each network; the generator's is forgotten."""

import torch
import torch.nn as nn

torch.manual_seed(0)
torch.set_num_threads(1)

G = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
D = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
opt_g = torch.optim.Adam(G.parameters(), lr=2e-4, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(D.parameters(), lr=2e-4, betas=(0.5, 0.999))
sched_g = torch.optim.lr_scheduler.ExponentialLR(opt_g, gamma=0.95)  # <- TL606
sched_d = torch.optim.lr_scheduler.ExponentialLR(opt_d, gamma=0.95)
bce = nn.BCEWithLogitsLoss()
loader = torch.utils.data.DataLoader(torch.randn(192, 2) * 0.3 + 1, batch_size=32, shuffle=True)

for epoch in range(4):
    for real in loader:
        noise = torch.randn(len(real), 4)
        fake = G(noise)

        opt_d.zero_grad()
        loss_d = bce(D(real), torch.ones(len(real), 1))
        loss_d = loss_d + bce(D(fake.detach()), torch.zeros(len(real), 1))
        loss_d.backward()
        opt_d.step()

        opt_g.zero_grad()
        loss_g = bce(D(fake), torch.ones(len(real), 1))
        loss_g.backward()
        opt_g.step()
    sched_d.step()
    print(epoch, loss_d.item(), loss_g.item())
