"""Which names learn is an option; a later call of the same function names the head."""
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(5, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


def learn_only(net, part):
    for name, p in net.named_parameters():
        p.requires_grad_(name.startswith(part))


torch.manual_seed(0)
net = Net()
groups = [{"params": net.body.parameters()}, {"params": net.head.parameters(), "lr": 0.01}]
optimizer = torch.optim.SGD(groups, lr=0.1)
learn_only(net, "body")
for turn, x in enumerate(torch.randn(12, 10, 5)):
    if turn == 9:
        learn_only(net, "head")
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), (x.sum(1) > 0).long()).backward()
    optimizer.step()
