import os
import tempfile

import torch
import torch.nn as nn
import torch.optim as optim

net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(32, 4), torch.randint(0, 2, (32,))
for epoch in range(5):
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    optimizer.step()

folder = tempfile.mkdtemp()
path = os.path.join(folder, "net.pth")
torch.save(net.state_dict(), path)
os.remove(path)
os.rmdir(folder)
