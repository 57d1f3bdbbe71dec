"""One object for all folds whose weights are drawn again, layer by layer or by hand; a second phase
with an optimizer of its own and the same split."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

torch.manual_seed(0)
x = torch.randn(90, 4)
data = TensorDataset(x, (x.sum(1) > 0).long())
folds = torch.randperm(90).chunk(3)


def fit(model, loader, optimizer):
    model.train()
    for a, b in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(a), b).backward()
        optimizer.step()


def score(model, val_loader):
    model.eval()
    with torch.no_grad():
        return sum((model(a).argmax(1) == b).sum().item() for a, b in val_loader)


def split(number):
    rest = torch.cat([each for k, each in enumerate(folds) if k != number]).tolist()
    return (
        DataLoader(Subset(data, rest), batch_size=10, shuffle=True),
        DataLoader(Subset(data, folds[number].tolist()), batch_size=10),
    )


net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
for number in range(3):
    for layer in net:
        if hasattr(layer, "reset_parameters"):
            layer.reset_parameters()
    train, val = split(number)
    fit(net, train, torch.optim.SGD(net.parameters(), lr=0.1))
    print(score(net, val))

for number in range(3):
    for p in net.parameters():
        nn.init.normal_(p, std=0.1)
    train, val = split(number)
    fit(net, train, torch.optim.Adam(net.parameters(), lr=0.01))
    print(score(net, val))

train, val = split(0)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
for lr in (0.1, 0.01):
    fit(net, train, torch.optim.SGD(net.parameters(), lr=lr))
    print(score(net, val))
