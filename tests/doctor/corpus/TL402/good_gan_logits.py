"""GAN: the discriminator returns logits, their sigmoid is only printed."""

import torch
import torch.nn as nn

torch.manual_seed(0)
torch.set_num_threads(1)

latent = 4
G = nn.Sequential(nn.Linear(latent, 16), nn.ReLU(), nn.Linear(16, 2), nn.Sigmoid())
D = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))

criterion = nn.BCEWithLogitsLoss()
optimizerD = torch.optim.Adam(D.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizerG = torch.optim.Adam(G.parameters(), lr=2e-4, betas=(0.5, 0.999))

data = torch.rand(256, 2) ** 2
dataloader = torch.utils.data.DataLoader(data, batch_size=32, shuffle=True)

for epoch in range(2):
    for i, real in enumerate(dataloader):
        ones = torch.ones(real.size(0), 1)
        zeros = torch.zeros(real.size(0), 1)

        D.zero_grad()
        real_scores = D(real)
        fake = G(torch.randn(real.size(0), latent))
        fake_scores = D(fake.detach())
        errD = criterion(real_scores, ones) + criterion(fake_scores, zeros)
        errD.backward()
        D_x = torch.sigmoid(real_scores).mean().item()
        optimizerD.step()

        G.zero_grad()
        output = D(fake)
        errG = criterion(output, ones)
        errG.backward()
        D_G_z = output.sigmoid().mean().item()
        optimizerG.step()
        if i % 4 == 0:
            print(f"[{epoch}][{i}] D {errD.item():.3f} G {errG.item():.3f} {D_x:.3f} {D_G_z:.3f}")
