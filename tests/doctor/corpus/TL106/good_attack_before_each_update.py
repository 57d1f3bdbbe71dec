"""Adversarial training: the first backward is for the input alone."""
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
rows = torch.utils.data.TensorDataset(torch.randn(48, 4), torch.randint(0, 3, (48,)))
for x, y in torch.utils.data.DataLoader(rows, batch_size=12, shuffle=True):
    x.requires_grad_(True)
    nn.functional.cross_entropy(net(x), y).backward()
    optimizer.zero_grad()
    worse = (x + 0.1 * x.grad.sign()).detach()
    loss = nn.functional.cross_entropy(net(worse), y)
    loss.backward()
    optimizer.step()
print(loss.item())
