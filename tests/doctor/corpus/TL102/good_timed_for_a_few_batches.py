"""How long an update takes is measured over three batches; the training comes after it."""
import time
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,)))
train_loader = DataLoader(data, batch_size=8, shuffle=True)
net = nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for number, (inputs, targets) in enumerate(train_loader):
    start = time.time()
    F.cross_entropy(net(inputs), targets).backward()
    optimizer.step()
    if number == 2:
        break
print(time.time() - start)
net = nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for inputs, targets in train_loader:
    optimizer.zero_grad()
    F.cross_entropy(net(inputs), targets).backward()
    optimizer.step()
