"""WGAN: the generator is updated every n_critic-th batch; each has its own clearing."""
import torch
import torch.nn as nn

torch.manual_seed(0)
n_critic = 3
G = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
D = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer_G = torch.optim.RMSprop(G.parameters(), lr=5e-5)
optimizer_D = torch.optim.RMSprop(D.parameters(), lr=5e-5)
dataloader = torch.utils.data.DataLoader(torch.randn(72, 2), batch_size=12, shuffle=True)

for epoch in range(2):
    for i, real_imgs in enumerate(dataloader):
        optimizer_D.zero_grad()
        z = torch.randn(real_imgs.shape[0], 3)
        fake_imgs = G(z)
        d_loss = -torch.mean(D(real_imgs)) + torch.mean(D(fake_imgs))
        d_loss.backward()
        optimizer_D.step()

        optimizer_G.zero_grad()
        # Train the generator every n_critic steps
        if i % n_critic == 0:
            g_loss = -torch.mean(D(G(z)))
            g_loss.backward()
            optimizer_G.step()
    print(epoch, d_loss.item(), g_loss.item())
