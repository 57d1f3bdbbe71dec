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
    criterion(domain(features(target)), torch.ones(8, 1)).backward()
    feature_optimizer.step()

    domain_optimizer.zero_grad()
    both = torch.cat((features(source).detach(), features(target).detach()))
    labels = torch.cat((torch.ones(8, 1), torch.zeros(8, 1)))
    criterion(domain(both), labels).backward()
    domain_optimizer.step()
