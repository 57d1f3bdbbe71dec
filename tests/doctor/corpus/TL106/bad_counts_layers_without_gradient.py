# After each epoch it counts the layers that got no gradient; nothing is ever updated.
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def idle(network):
    names = []
    for name, weight in network.named_parameters():
        if weight.grad is None:
            names.append(name)
    return names


torch.manual_seed(1)
features = torch.randn(96, 7)
groups = (features[:, 0] > 0).long()
batches = DataLoader(TensorDataset(features, groups), batch_size=12, shuffle=True)
network = nn.Sequential(nn.Linear(7, 14), nn.ReLU(), nn.Linear(14, 2))
optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
for epoch in range(2):
    for x, y in batches:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(network(x), y)
        loss.backward()  # <- TL106
    print(epoch, loss.item(), idle(network))
