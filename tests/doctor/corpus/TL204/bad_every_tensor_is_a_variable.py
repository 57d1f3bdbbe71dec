"""The meter asks for a `Variable`, which every tensor is, and adds losses up with their graphs."""

import torch
from torch import nn
from torch.autograd import Variable
from torch.utils.data import DataLoader, TensorDataset


class Mean:
    def __init__(self):
        self.sum, self.seen = 0.0, 0

    def put(self, value):
        if isinstance(value, Variable):
            size, value = value.numel(), value.sum()
        else:
            size = 1
        self.sum = self.sum + value
        self.seen += size


torch.manual_seed(0)
x = torch.randn(64, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=16, shuffle=True)
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
mean = Mean()
for epoch in range(4):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(inputs), targets)
        loss.backward()
        optimizer.step()
        mean.put(loss)  # <- TL204
print(float(mean.sum) / mean.seen)
