import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(6, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


@torch.no_grad()
def augment(x):
    return torch.tanh(nn.Linear(4, 6)(x))


for _ in range(5):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(augment(torch.randn(8, 4))), torch.randint(0, 2, (8,)))
    loss.backward()
    optimizer.step()
