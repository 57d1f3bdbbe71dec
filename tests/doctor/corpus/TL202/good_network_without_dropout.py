"""The network has no layer that knows the difference, and `eval()` is not used for it."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--command", default="main")
parser.add_argument("--net", default="Narrow")
args = parser.parse_args()


class Narrow(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))

    def forward(self, x):
        return self.layers(x)


@torch.no_grad()
def evaluate(hyper, net, loader):
    hyper.eval()
    right = total = 0
    for x, y in loader:
        net.load_state_dict(hyper.state_dict())
        predicted = net(x)
        right += predicted.argmax(1).eq(y).sum().item()
        total += len(y)
    hyper.train()
    return right / total


def train(hyper, net, loader):
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    net.train()
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
    hyper.load_state_dict(net.state_dict())


def main(make):
    torch.manual_seed(0)
    x = torch.randn(640, 6)
    y = (x[:, 0] > 0).long() + (x[:, 1] * x[:, 2] > 0).long()
    loader = DataLoader(TensorDataset(x[:512], y[:512]), batch_size=16, shuffle=True)
    held = DataLoader(TensorDataset(x[512:], y[512:]), batch_size=64)
    hyper, net = make(), make()
    for epoch in range(3):
        train(hyper, net, loader)
        print(epoch, evaluate(hyper, net, held))


globals()[args.command](globals()[args.net])
