"""The critic of a WGAN: its penalty takes gradients of an input, and nothing else does."""
import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 2))
critic = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3)
opt_c = torch.optim.Adam(critic.parameters(), lr=1e-3)


def penalty(real, fake):
    between = torch.rand(len(real), 1)
    between = (between * real + (1 - between) * fake).requires_grad_(True)
    grads = torch.autograd.grad(
        outputs=critic(between).sum(), inputs=between, create_graph=True
    )[0]
    return ((grads.norm(2, dim=1) - 1) ** 2).mean()


for i, real in enumerate(torch.randn(6, 8, 2) + 2):
    opt_c.zero_grad()
    fake = generator(torch.randn(8, 3))
    critic_loss = critic(fake.detach()).mean() - critic(real).mean()
    critic_loss = critic_loss + 10 * penalty(real, fake.detach())
    opt_c.step()  # <- TL108
    opt_g.zero_grad()
    generator_loss = -critic(generator(torch.randn(8, 3))).mean()
    generator_loss.backward()
    opt_g.step()
print(critic_loss.item(), generator_loss.item())
