import torch
from torch import nn

torch.manual_seed(0)
batch = torch.randn(64, 8)

for name, layer in (("linear", nn.Linear(8, 8)), ("batch norm", nn.BatchNorm1d(8))):
    gradients = []
    for size in (64, 4):
        layer.zero_grad()
        for part in batch.split(size):
            (layer(part).exp().mean() * len(part) / 64).backward()
        gradients.append(layer.weight.grad.clone())
    difference = (gradients[0] - gradients[1]).norm() / gradients[0].norm()
    print(f"{name}: one batch of 64 against 16 of 4: gradients differ by {difference.item():.1e}")
