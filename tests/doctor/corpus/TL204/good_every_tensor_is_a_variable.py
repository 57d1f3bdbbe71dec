"""The meter asks for a `Variable`, as programs for older versions of torch do: every tensor is one,
so it always takes the number alone."""

import torch
from torch import nn
from torch.autograd import Variable
from torch.utils.data import DataLoader, TensorDataset


class Mean:
    def __init__(self):
        self.sum, self.seen = 0.0, 0

    def put(self, value):
        if isinstance(value, Variable):
            size, value = value.numel(), value.data.sum()
        elif torch.is_tensor(value):
            size, value = value.numel(), value.sum()
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
        mean.put(loss)
print(float(mean.sum) / mean.seen)
