"""The gradients of the last batch are clipped at the end of the epoch, when they are of no use."""
import torch
from torch import nn


def update(net, optimizer, x, y):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(net(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
batches = [(torch.randn(16, 4), torch.randn(16, 1)) for _ in range(3)]
for epoch in range(4):
    total = 0.0
    for x, y in batches:
        total += update(net, optimizer, x, y)
    nn.utils.clip_grad_norm_(net.parameters(), max_norm=1.0)  # <- TL105
    print(epoch, total / len(batches))
