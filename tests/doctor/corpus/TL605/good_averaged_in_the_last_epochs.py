"""A cosine for the first epochs, then a flat rate while the weights are averaged (SWA)."""

import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)
x = torch.randn(160, 6)
loader = DataLoader(TensorDataset(x, (x.sum(1) > 0).long()), batch_size=16, shuffle=True)
net = nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 2))
average = AveragedModel(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
begins, epochs = 3, 8
down = CosineAnnealingLR(optimizer, T_max=begins)
flat = SWALR(optimizer, swa_lr=0.03, anneal_epochs=2)
for epoch in range(epochs):
    for inputs, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(inputs), labels).backward()
        optimizer.step()
    if epoch < begins:
        down.step()
    else:
        average.update_parameters(net)
        flat.step()
update_bn(loader, average)
