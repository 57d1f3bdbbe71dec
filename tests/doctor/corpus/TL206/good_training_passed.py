"""Functional dropout that knows its mode: by name, by position, by argument."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, p=0.3):
        super().__init__()
        self.p = p
        self.fc1 = nn.Linear(8, 16)
        self.fc2 = nn.Linear(16, 16)
        self.fc3 = nn.Linear(16, 2)

    def drop(self, x, **options):
        return F.dropout(x, self.p, **options)

    def forward(self, x):
        x = F.dropout(F.relu(self.fc1(x)), p=self.p, training=self.training)
        x = F.dropout(F.relu(self.fc2(x)), self.p, self.training)
        x = self.drop(x, training=self.training)
        if self.training:
            x = F.dropout(x, 0.1)
        return self.fc3(x)


if __name__ == "__main__":
    torch.manual_seed(0)
    x, y = torch.randn(64, 8), torch.randint(0, 2, (64,))
    loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters())
    for epoch in range(2):
        net.train()
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(net(xb), yb)
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            print(epoch, F.cross_entropy(net(x), y).item())
