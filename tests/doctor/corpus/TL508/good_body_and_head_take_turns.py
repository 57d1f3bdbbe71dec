"""Body and head are updated on different batches; the gradients of the other are thrown away."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X = torch.randn(96, 6)
Y = (X.sum(1) > 0).long()
loader = DataLoader(TensorDataset(X, Y), batch_size=16, shuffle=True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(6, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


net = Net()
body = torch.optim.Adam(net.body.parameters(), 1e-3)
head = torch.optim.SGD(net.head.parameters(), 1e-2)
for epoch in range(4):
    for i, (x, y) in enumerate(loader):
        loss = F.cross_entropy(net(x), y)
        body.zero_grad()
        head.zero_grad()
        loss.backward()
        if i % 2:
            body.step()
        else:
            head.step()
