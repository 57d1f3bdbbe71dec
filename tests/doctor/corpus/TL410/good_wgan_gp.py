import torch
from torch import autograd, nn


def calc_penalty(critic, real, fake):
    mix = torch.rand(real.size(0), 1)
    points = autograd.Variable(mix * real + (1 - mix) * fake, requires_grad=True)
    points.requires_grad_(True)
    out = critic(points)
    grads = autograd.grad(
        outputs=out,
        inputs=points,
        grad_outputs=torch.ones(out.size()),
        create_graph=True,
        retain_graph=True,
        only_inputs=True,
    )[0]
    return ((grads.view(grads.size(0), -1).norm(2, dim=1) - 1) ** 2).mean() * 10


torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(critic.parameters(), lr=1e-4, betas=(0.5, 0.9))
for _ in range(5):
    real, fake = torch.randn(6, 4), torch.randn(6, 4)
    optimizer.zero_grad()
    loss = critic(fake).mean() - critic(real).mean() + calc_penalty(critic, real, fake)
    loss.backward()
    optimizer.step()
