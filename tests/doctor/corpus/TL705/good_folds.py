"""Cross-validation: each fold's model has not seen its own part; in the end one learns from all."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, SubsetRandomSampler, TensorDataset

torch.manual_seed(0)
x = torch.randn(90, 4)
data = TensorDataset(x, (x.sum(1) > 0).long())


def fit(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.train()
    for _ in range(2):
        for a, b in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(a), b).backward()
            optimizer.step()


@torch.no_grad()
def score(model, loader):
    model.eval()
    return sum((model(a).argmax(1) == b).sum().item() for a, b in loader)


folds = torch.randperm(90).chunk(3)
for held_out in range(3):
    rest = torch.cat([fold for k, fold in enumerate(folds) if k != held_out]).tolist()
    net = nn.Linear(4, 2)
    fit(net, DataLoader(data, batch_size=10, sampler=SubsetRandomSampler(rest)))
    print(score(net, DataLoader(Subset(data, folds[held_out].tolist()), batch_size=10)))

same = nn.Linear(4, 2)
fresh = {name: value.clone() for name, value in same.state_dict().items()}
for held_out in range(3):
    same.load_state_dict(fresh)
    rest = torch.cat([fold for k, fold in enumerate(folds) if k != held_out]).tolist()
    fit(same, DataLoader(Subset(data, rest), batch_size=10, shuffle=True))
    val_loader = DataLoader(Subset(data, folds[held_out].tolist()), batch_size=10)
    print(score(same, val_loader))

final = nn.Linear(4, 2)
fit(final, DataLoader(data, batch_size=10, shuffle=True))
