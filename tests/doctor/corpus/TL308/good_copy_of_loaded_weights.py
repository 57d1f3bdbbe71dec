import torch
from torch import nn

torch.manual_seed(0)
source, net = nn.Linear(4, 4), nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def reference(x):
    fixed = nn.Linear(4, 4)
    fixed.load_state_dict(source.state_dict())
    return fixed(x)


for _ in range(5):
    optimizer.zero_grad()
    (reference(net(torch.randn(8, 4))) - torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
