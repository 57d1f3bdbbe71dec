import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
latent = 4
generator = nn.Sequential(nn.Linear(latent, 16), nn.ReLU(), nn.Linear(16, 2))
discriminator = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1), nn.Sigmoid())
adversarial = nn.BCELoss()
optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999))
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-3, betas=(0.5, 0.999))
samples = torch.randn(64, 2) * 0.5 + 2
loader = torch.utils.data.DataLoader(samples, batch_size=16, shuffle=True)

for epoch in range(3):
    for real in loader:
        ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
        optimizer_g.zero_grad()
        optimizer_d.zero_grad()

        fake = generator(torch.randn(len(real), latent))
        g_loss = adversarial(discriminator(fake), ones)
        g_loss.backward()
        optimizer_g.step()

        real_loss = adversarial(discriminator(real), ones)
        fake_loss = adversarial(discriminator(fake.detach()), zeros)
        d_loss = (real_loss + fake_loss) / 2
        d_loss.backward()  # <- TL110
        optimizer_d.step()
    print(epoch, g_loss.item(), d_loss.item())
