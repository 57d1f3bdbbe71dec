import torch
import torch.nn.functional as F
from torch import nn


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, 8), nn.ReLU())
        self.first, self.second = nn.Linear(8, 2), nn.Linear(8, 3)

    def forward(self, x):
        h = self.body(x)
        return self.first(h), self.second(h)


class Multitask:
    def __init__(self, net):
        self.net = net
        self.opt_first = torch.optim.SGD(
            [{"params": net.body.parameters()}, {"params": net.first.parameters()}], lr=0.1
        )
        self.opt_second = torch.optim.SGD(  # <- TL311
            [{"params": net.body.parameters()}, {"params": net.second.parameters()}], lr=0.1
        )

    def step(self, x, a, b):
        one, two = self.net(x)
        total = F.cross_entropy(one, a) + F.cross_entropy(two, b)
        self.opt_first.zero_grad()
        self.opt_second.zero_grad()
        total.backward()
        nn.utils.clip_grad_norm_(self.net.parameters(), 5.0)
        self.opt_first.step()
        self.opt_second.step()
        return total.item()


torch.manual_seed(0)
task = Multitask(Shared())
for _ in range(5):
    print(task.step(torch.randn(6, 5), torch.randint(0, 2, (6,)), torch.randint(0, 3, (6,))))
