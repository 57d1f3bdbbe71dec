"""`reset_parameters` of each layer, and `apply` of a function, after the seed."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def build():
    return nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 2))


def orthogonal(module):
    if isinstance(module, nn.Linear):
        nn.init.orthogonal_(module.weight)


net, other = build(), build()
torch.manual_seed(7)
for module in net.modules():
    if hasattr(module, "reset_parameters"):
        module.reset_parameters()
other.apply(orthogonal)
net = nn.Sequential(net, other)
loader = DataLoader(TensorDataset(torch.randn(24, 2), torch.randint(0, 2, (24,))), 4, shuffle=True)
opt = torch.optim.SGD(net.parameters(), 0.1)
for x, y in loader:
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
