"""How large gradients are once the training is over: nothing is meant to step any more."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rows = TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,)))
loader = DataLoader(rows, batch_size=8, shuffle=True)
net = nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for inputs, targets in loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(inputs), targets).backward()
    optimizer.step()

norms = []
for inputs, targets in loader:
    net.zero_grad()
    nn.functional.cross_entropy(net(inputs), targets).backward()
    norms.append(sum(each.grad.norm().item() ** 2 for each in net.parameters()) ** 0.5)
print(sum(norms) / len(norms))
