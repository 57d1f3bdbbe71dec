"""The clones of a state beside the epoch that they are of, and a shallow copy that is loaded at once."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(80, 3)
y = (x[:, 0] > x[:, 1]).long()
net = nn.Sequential(nn.Linear(3, 12), nn.ReLU(), nn.Linear(12, 2))
twin = nn.Sequential(nn.Linear(3, 12), nn.ReLU(), nn.Linear(12, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
highest, kept = 0.0, {}
for epoch in range(8):
    for rows in torch.randperm(60).split(20):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
        optimizer.step()
    twin.load_state_dict({**net.state_dict()})
    with torch.no_grad():
        share = (twin(x[60:]).argmax(dim=1) == y[60:]).float().mean().item()
    if share > highest:
        highest = share
        kept = dict((name, tensor.clone()) for name, tensor in net.state_dict().items())
net.load_state_dict(kept)
