import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
discriminator = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
bce = nn.BCEWithLogitsLoss()
opt_g = torch.optim.Adam(generator.parameters(), lr=2e-3)
opt_d = torch.optim.Adam(discriminator.parameters(), lr=2e-3)

for epoch in range(3):
    for real in torch.utils.data.DataLoader(torch.randn(64, 2), batch_size=16, shuffle=True):
        ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
        opt_g.zero_grad()
        fake = generator(torch.randn(len(real), 4))
        g_loss = bce(discriminator(fake), ones)
        g_loss.backward()
        opt_g.step()

        discriminator.zero_grad()
        d_loss = bce(discriminator(real), ones) + bce(discriminator(fake.detach()), zeros)
        d_loss.backward()
        opt_d.step()
    print(epoch, g_loss.item(), d_loss.item())
