"""The means over all batches are taken and returned after the first batch."""

from collections import defaultdict

import torch
from torch import nn


class Losses:
    def __call__(self, output, target, kept):
        loss = nn.functional.mse_loss(output, target)
        kept["loss"].append(loss.item())
        return loss


@torch.no_grad()
def evaluate(net, loader, losses):
    net.eval()
    kept = defaultdict(list)
    for inputs, targets in iter(loader):
        losses(net(inputs), targets, kept)
        means = {name: sum(values) / len(loader) for name, values in kept.items()}
        return means  # <- TL111


torch.manual_seed(0)
x = torch.randn(40, 4)
data = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    net.train()
    for inputs, targets in torch.utils.data.DataLoader(data, batch_size=8, shuffle=True):
        opt.zero_grad()
        nn.functional.mse_loss(net(inputs), targets).backward()
        opt.step()
    print(epoch, evaluate(net, torch.utils.data.DataLoader(data, batch_size=8), Losses()))
