"""The first weights are written down: nothing random is left of them."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

net = nn.Sequential(nn.Linear(2, 2))
net[0].weight = nn.Parameter(torch.tensor([[0.1, 0.2], [0.3, 0.4]]))
net[0].bias = nn.Parameter(torch.tensor([0.0, 0.0]))
torch.manual_seed(0)  # for the order of the batches
loader = DataLoader(TensorDataset(torch.randn(24, 2), torch.randint(0, 2, (24,))), 4, shuffle=True)
opt = torch.optim.SGD(net.parameters(), 0.1)
for x, y in loader:
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
