"""A Wasserstein GAN with a gradient penalty by hand: the critic makes two updates for each of the
generator's."""

import torch
from data import clusters
from torch import Tensor, nn
from torch.utils.data import DataLoader

EPOCHS, LATENT, CRITIC_UPDATES = 50, 4, 2

torch.manual_seed(0)
train = DataLoader(clusters(512, seed=0), batch_size=64, shuffle=True)
generator = nn.Sequential(nn.Linear(LATENT, 32), nn.ReLU(), nn.Linear(32, 2))
critic = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 1))
g_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-2, betas=(0.0, 0.9))
c_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-2, betas=(0.0, 0.9))


def critic_loss(real: Tensor) -> Tensor:
    with torch.no_grad():
        fake = generator(torch.randn(len(real), LATENT))
    mixed = torch.lerp(fake, real, torch.rand(len(real), 1)).requires_grad_()
    (slope,) = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
    penalty = (slope.norm(dim=1) - 1).square().mean()
    return critic(fake).mean() - critic(real).mean() + 10 * penalty


def generator_loss(noise: Tensor) -> Tensor:
    return -critic(generator(noise)).mean()


update = 0
for _ in range(EPOCHS):
    for real in train:
        c_optimizer.zero_grad()  # generator_loss has left gradients on the critic too
        critic_loss(real).backward()
        c_optimizer.step()
        update += 1
        if update % CRITIC_UPDATES == 0:
            g_optimizer.zero_grad()
            generator_loss(torch.randn(64, LATENT)).backward()
            g_optimizer.step()

with torch.inference_mode():
    x = generator(torch.randn(2000, LATENT))[:, 0]
print(f"|x| {x.abs().mean():.4f}  left {(x < 0).float().mean():.4f}")
