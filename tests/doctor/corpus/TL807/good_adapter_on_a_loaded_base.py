"""The base's file fills the model; then the adapter's file, which has nothing else, goes on top."""

import torch
from torch import nn


class Adapted(nn.Module):
    def __init__(self, base, rank=2):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(rank, base.in_features) / 4)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + x @ self.down.T @ self.up.T


def adapted():
    net = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3))
    net.load_state_dict(torch.load("base.pt"))
    net[0] = Adapted(net[0])
    net[2].requires_grad_(False)
    return net


def trained(net, seed, steps=12):
    generator = torch.Generator().manual_seed(seed)
    x, y = torch.randn(64, 5, generator=generator), torch.randint(3, (64,), generator=generator)
    wanted = [each for each in net.parameters() if each.requires_grad]
    optimizer = torch.optim.Adam(wanted, lr=1e-2)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
    return net


torch.manual_seed(0)
torch.save(
    trained(nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)), 1).state_dict(), "base.pt"
)
tuned = trained(adapted(), 2)
torch.save({k: v for k, v in tuned.named_parameters() if v.requires_grad}, "adapter.pt")
again = adapted()
again.load_state_dict(torch.load("adapter.pt"), strict=False)
again.eval()
