"""By the options' defaults 300 samples make 10 parts, and each epoch begins by clearing what the tenth has left."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--count", type=int, default=300)
parser.add_argument("--size", type=int, default=30)
parser.add_argument("--steps", type=int, default=3)
args = parser.parse_args()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(3, 12), nn.Linear(12, 4)

    def forward(self, x):
        return self.two(torch.sin(self.one(x)))


torch.manual_seed(1)
x = torch.rand(args.count, 3)
label = (x.sum(1) * 1.3).long().clamp(max=3)
net = Net()
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(5):
    sgd.zero_grad()
    order = torch.randperm(args.count)
    parts = order.split(args.size)
    for number, part in enumerate(parts):
        cost = nn.functional.cross_entropy(net(x[part]), label[part])
        (cost / args.steps).backward()
        if (number + 1) % args.steps == 0:
            sgd.step()  # <- TL506
            sgd.zero_grad()
    print(epoch, cost.item())
