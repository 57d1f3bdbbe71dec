import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
ds = TensorDataset(torch.randn(64, 5), torch.randint(0, 3, (64,)))
net = nn.Linear(5, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for xb, yb in DataLoader(ds, batch_size=16, shuffle=True):
        for p in net.parameters():
            p.grad = None
        loss = F.cross_entropy(net(xb), yb)
        loss.backward()
        opt.step()
    print(loss.item())
