import torch
from torch import nn

torch.manual_seed(5)
features, domain = nn.Linear(6, 4), nn.Linear(4, 1)
feature_optimizer = torch.optim.SGD(features.parameters(), lr=0.05)
domain_optimizer = torch.optim.SGD(domain.parameters(), lr=0.05)
criterion = nn.BCEWithLogitsLoss()
for _ in range(10):
    source, target = torch.randn(8, 6), torch.randn(8, 6) + 1
    feature_optimizer.zero_grad()
    confusion = criterion(domain(features(target)), torch.ones(8, 1))
    confusion.backward()
    feature_optimizer.step()

    both = torch.cat((features(source).detach(), features(target).detach()))
    labels = torch.cat((torch.ones(8, 1), torch.zeros(8, 1)))
    told_apart = criterion(domain(both), labels)
    told_apart.backward()  # <- TL110
    domain_optimizer.step()
    domain_optimizer.zero_grad()
print(told_apart.item())
