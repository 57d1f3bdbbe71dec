"""Parameters without a gradient are left out, the others go down by hand."""
import torch
from torch import nn


def descend(network, rate):
    with torch.no_grad():
        for weight in network.parameters():
            if weight.grad is None:
                continue
            weight -= rate * weight.grad


torch.manual_seed(1)
network = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 1))
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for rows in torch.randn(12, 8, 6):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(network(rows), rows.mean(1, keepdim=True))
    loss.backward()
    descend(network, 0.1)
print(loss.item())
