"""The critic learns from the other network's loss alone, with the sign turned, on purpose."""
import torch
from torch import nn

torch.manual_seed(0)
features, label_head, domain_head = nn.Linear(4, 8), nn.Linear(8, 3), nn.Linear(8, 2)
opt = torch.optim.SGD([*features.parameters(), *label_head.parameters()], lr=0.1)
opt_domain = torch.optim.SGD(domain_head.parameters(), lr=0.1)
for x in torch.randn(6, 8, 4):
    opt_domain.zero_grad()
    opt.zero_grad()
    hidden = features(x)
    loss = nn.functional.cross_entropy(label_head(hidden), x[:, :3].argmax(1))
    domain = nn.functional.cross_entropy(domain_head(hidden), (x[:, 0] > 0).long())
    (loss + 0.1 * domain).backward()
    opt.step()
    opt_domain.step()
print(loss.item(), domain.item())
