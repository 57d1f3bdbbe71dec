"""The wrapped optimizer is the same one: what it clears is what it should apply."""

import horovod.torch as hvd
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

hvd.init()
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
plain = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
averaging = hvd.DistributedOptimizer(plain, named_parameters=net.named_parameters())
hvd.broadcast_parameters(net.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(averaging, root_rank=0)
loader = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(2, (64,))), 16, shuffle=True)
for epoch in range(4):
    for features, labels in loader:
        loss = nn.functional.cross_entropy(net(features), labels)
        loss.backward()
        plain.zero_grad()  # <- TL101
        averaging.step()
