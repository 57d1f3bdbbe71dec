"""The first backward fills the statistics of an optimizer of its own, if that is the one chosen."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--optimizer", default="curvature")
args = parser.parse_args()


class Curvature(torch.optim.Optimizer):
    """SGD, divided by the mean square of sampled gradients."""

    def __init__(self, net, lr):
        super().__init__(net.parameters(), {"lr": lr})
        self.collects, self.updates, self.every = False, 0, 5
        self.squares = {}
        for p in net.parameters():
            p.register_hook(lambda grad, p=p: self.collect(p, grad))

    def collect(self, p, grad):
        if self.collects:
            self.squares[p] = 0.9 * self.squares.get(p, 1.0) + 0.1 * grad.detach() ** 2

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                p -= group["lr"] * p.grad / (self.squares[p] + 0.1)
        self.updates += 1


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
name = args.optimizer.lower()
if name == "sgd":
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
elif name == "curvature":
    optimizer = Curvature(net, lr=0.01)
else:
    raise NotImplementedError(name)

for step in range(60):
    x = torch.randn(32, 4)
    y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
    optimizer.zero_grad()
    outputs = net(x)
    loss = nn.functional.cross_entropy(outputs, y)
    if name in ["curvature", "diagonal"] and optimizer.updates % optimizer.every == 0:
        optimizer.collects = True
        with torch.no_grad():
            sampled = torch.multinomial(outputs.softmax(dim=1), 1).squeeze()
        nn.functional.cross_entropy(outputs, sampled).backward(retain_graph=True)
        optimizer.collects = False
        optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(step, loss.item())
