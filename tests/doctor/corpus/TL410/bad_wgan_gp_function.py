import torch
from torch import nn


def gradient_penalty(critic, real, fake):
    alpha = torch.rand(real.size(0), 1)
    between = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    scores = critic(between)
    gradients = torch.autograd.grad(  # <- TL410
        outputs=scores,
        inputs=between,
        grad_outputs=torch.ones_like(scores),
        retain_graph=True,
    )[0]
    norms = gradients.view(real.size(0), -1).norm(2, dim=1)
    return ((norms - 1) ** 2).mean()


torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 4))
critic = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3)
opt_c = torch.optim.Adam(critic.parameters(), lr=1e-3)
lambda_gp = 10

for step in range(6):
    real = torch.randn(8, 4)
    fake = generator(torch.randn(8, 2))
    opt_c.zero_grad()
    loss_c = critic(fake.detach()).mean() - critic(real).mean()
    loss_c = loss_c + lambda_gp * gradient_penalty(critic, real, fake.detach())
    loss_c.backward()
    opt_c.step()
    if step % 2 == 0:
        opt_g.zero_grad()
        loss_g = -critic(generator(torch.randn(8, 2))).mean()
        loss_g.backward()
        opt_g.step()
