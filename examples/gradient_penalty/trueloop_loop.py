"""The same with two Steps: graphs of gradients work as usual, and a loss may name its parts."""

import torch
from data import clusters
from torch import Tensor, nn

import trueloop

EPOCHS, LATENT, CRITIC_UPDATES = 50, 4, 2

torch.manual_seed(0)
train = trueloop.Feed(clusters(512, seed=0), 64, shuffle=True)
generator = nn.Sequential(nn.Linear(LATENT, 32), nn.ReLU(), nn.Linear(32, 2))
critic = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 1))
g_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-2, betas=(0.0, 0.9))
c_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-2, betas=(0.0, 0.9))


def critic_loss(critic: nn.Module, real: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    with torch.no_grad():
        fake = generator(torch.randn(len(real), LATENT))
    mixed = torch.lerp(fake, real, torch.rand(len(real), 1)).requires_grad_()
    (slope,) = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
    penalty = (slope.norm(dim=1) - 1).square().mean()
    loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
    return loss, {"penalty": penalty}


def generator_loss(generator: nn.Module, noise: Tensor) -> Tensor:
    return -critic(generator(noise)).mean()


c_step = trueloop.Step(critic, c_optimizer, critic_loss)
g_step = trueloop.Step(generator, g_optimizer, generator_loss)

for real in trueloop.batches(c_step, train, epochs=EPOCHS):
    record = c_step(real)  # record.parts["penalty"]
    if c_step.updates % CRITIC_UPDATES == 0:
        g_step(torch.randn(64, LATENT))

with torch.inference_mode():
    x = generator(torch.randn(2000, LATENT))[:, 0]
print(f"|x| {x.abs().mean():.4f}  left {(x < 0).float().mean():.4f}")
