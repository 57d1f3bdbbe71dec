"""All but "lora" is frozen, but no parameter is called so: they are in `parametrizations`."""
import torch
from torch import nn
from torch.nn.utils import parametrize


class LowRank(nn.Module):
    def __init__(self, rows, columns, rank):
        super().__init__()
        self.left = nn.Parameter(torch.zeros(rows, rank))
        self.right = nn.Parameter(torch.randn(rank, columns) * 0.1)

    def forward(self, weight):
        return weight + self.left @ self.right


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(5, 8), nn.Linear(8, 2)
        parametrize.register_parametrization(self.body, "weight", LowRank(8, 5, 2))

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


torch.manual_seed(0)
net = Net()
for name, p in net.body.named_parameters():
    if "lora" not in name:
        p.requires_grad = False
groups = [{"params": net.body.parameters(), "lr": 0.01}, {"params": net.head.parameters()}]
optimizer = torch.optim.SGD(groups, lr=0.1)  # <- TL309
for x in torch.randn(12, 10, 5):
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), (x.sum(1) > 0).long()).backward()
    optimizer.step()
