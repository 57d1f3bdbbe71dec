"""The critic's gradients are cleared right after its own step: before the generator's loss."""

import torch
import torch.nn as nn

torch.manual_seed(1)
torch.set_num_threads(1)


class Generator(nn.Module):
    def __init__(self, noise=3, size=5):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(noise, 12), nn.Tanh(), nn.Linear(12, size))

    def forward(self, z):
        return self.body(z)


class Critic(nn.Module):
    def __init__(self, size=5):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(size, 12), nn.ReLU(), nn.Linear(12, 1))

    def forward(self, x):
        return self.body(x).view(-1)


def main():
    net_g, net_d = Generator(), Critic()
    opt_g = torch.optim.RMSprop(net_g.parameters(), lr=5e-4)
    opt_d = torch.optim.RMSprop(net_d.parameters(), lr=5e-4)
    data = [torch.rand(8, 5) for _ in range(6)]
    for step, real in enumerate(data * 3):
        z = torch.randn(8, 3)
        err_d = net_d(net_g(z).detach()).mean() - net_d(real).mean()
        err_d.backward()  # <- TL110
        opt_d.step()
        opt_d.zero_grad()

        opt_g.zero_grad()
        err_g = -net_d(net_g(z)).mean()
        err_g.backward()
        opt_g.step()
        print(step, err_d.item(), err_g.item())


main()
