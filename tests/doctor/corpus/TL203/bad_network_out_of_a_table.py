"""The module takes its network out of a table of networks and calls it: each pass of the validation
records a graph."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Embedded(nn.Module):
    def __init__(self, networks, name):
        super().__init__()
        self.embed = networks.get(name)

    def forward(self, classes):
        return self.embed(classes) / 2


def score(network, val_loader, embedded):
    network.eval()
    far = 0.0
    for x, classes in val_loader:
        wanted = embedded(classes)  # <- TL203
        with torch.no_grad():
            far += nn.functional.mse_loss(network(x), wanted).item() * len(x)
    network.train()
    return far


def networks_by_name(names):
    return {name: nn.Embedding(6, 6) for name in names.split()}


torch.manual_seed(0)
embedded = Embedded(networks_by_name("small large"), "small")
x = torch.randn(200, 4)
y = x[:, :3].argmax(1)
train_loader = DataLoader(TensorDataset(x[:160], y[:160]), batch_size=16, shuffle=True)
val_loader = DataLoader(TensorDataset(x[160:], y[160:]), batch_size=20)
network = nn.Linear(4, 6)
optimizer = torch.optim.Adam([*network.parameters(), *embedded.parameters()], lr=0.01)
for epoch in range(3):
    for batch, classes in train_loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(network(batch), embedded(classes)).backward()
        optimizer.step()
    print(score(network, val_loader, embedded) / 40)
