import torch
import torch.nn as nn
import torch.optim as optim

torch.manual_seed(999)
nz, batch_size = 4, 16
real_label, fake_label = 1.0, 0.0

netG = nn.Sequential(nn.Linear(nz, 16), nn.ReLU(True), nn.Linear(16, 2))
netD = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
criterion = nn.BCEWithLogitsLoss()
optimizerD = optim.Adam(netD.parameters(), lr=0.0002, betas=(0.5, 0.999))
optimizerG = optim.Adam(netG.parameters(), lr=0.0002, betas=(0.5, 0.999))
data = torch.randn(128, 2) + 3
dataloader = torch.utils.data.DataLoader(data, batch_size=batch_size, shuffle=True)

for epoch in range(2):
    for i, real in enumerate(dataloader):
        # (1) update D network: maximize log(D(x)) + log(1 - D(G(z)))
        label = torch.full((real.size(0), 1), real_label)
        errD_real = criterion(netD(real), label)
        errD_real.backward()
        noise = torch.randn(real.size(0), nz)
        fake = netG(noise)
        label.fill_(fake_label)
        errD_fake = criterion(netD(fake.detach()), label)
        errD_fake.backward()
        optimizerD.zero_grad()  # <- TL101
        optimizerD.step()

        # (2) update G network: maximize log(D(G(z)))
        optimizerG.zero_grad()
        label.fill_(real_label)
        errG = criterion(netD(fake), label)
        errG.backward()
        optimizerG.step()
        if i % 4 == 0:
            print(f"[{epoch}][{i}] D: {errD_real.item() + errD_fake.item():.3f} G: {errG.item():.3f}")
