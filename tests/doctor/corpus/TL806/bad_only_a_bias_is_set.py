"""Only a bias is set: the other first weights were drawn before the seed."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

net = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 2))
nn.init.xavier_uniform_(net[0].weight)
net[2].bias.data.fill_(-2.0)
torch.manual_seed(0)  # <- TL806
loader = DataLoader(TensorDataset(torch.randn(24, 2), torch.randint(0, 2, (24,))), 4, shuffle=True)
opt = torch.optim.SGD(net.parameters(), 0.1)
for x, y in loader:
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
