"""Two tables make 31 batches: three are left over in each epoch."""
import torch
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset

x = torch.randn(248, 4)
y = (x[:, 0] > 0).long()
halves = [TensorDataset(x[:100], y[:100]), TensorDataset(x[100:], y[100:])]
loader = DataLoader(ConcatDataset(halves), batch_size=8, shuffle=True)
net = nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    optimizer.zero_grad()
    for number, (inputs, targets) in enumerate(loader):
        loss = nn.functional.cross_entropy(net(inputs), targets) / 4
        loss.backward()
        if (number + 1) % 4 == 0:
            optimizer.step()  # <- TL506
            optimizer.zero_grad()
