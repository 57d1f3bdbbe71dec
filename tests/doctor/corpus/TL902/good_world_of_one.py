"""The process group has one rank, wherever it runs: there is nobody to get in its way."""
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
data = TensorDataset(torch.randn(40, 4), torch.randn(40, 1))
loader = DataLoader(data, batch_size=10, shuffle=True)
model = nn.parallel.DistributedDataParallel(nn.Linear(4, 1))
model.double()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model.module(x.double()), y.double())
        loss.backward()
        optimizer.step()
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x.double()), y.double()).backward()
        optimizer.step()
    torch.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}, "model.pt")
dist.destroy_process_group()
