"""Two tasks in turn, and a branch that joins in the third epoch."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(6, 24)
        self.heads = nn.ModuleList([nn.Linear(24, 2), nn.Linear(24, 3)])
        self.fine = nn.Linear(24, 24)

    def forward(self, x, task, fine):
        h = torch.relu(self.trunk(x))
        if fine:
            h = h + torch.relu(self.fine(h))
        return self.heads[task](h)


torch.manual_seed(0)
data = TensorDataset(torch.randn(192, 6), torch.randint(0, 2, (192,)), torch.randint(0, 3, (192,)))
loader = DataLoader(data, batch_size=16, shuffle=True)
net = Net()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
for epoch in range(5):
    for i, (x, *labels) in enumerate(loader):
        task = i % 2
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x, task, fine=epoch >= 2), labels[task])
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
