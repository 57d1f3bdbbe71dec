"""The slopes at the inputs are to stay small: a penalty, by a weight from the command line."""
import argparse

import torch
from torch import autograd, nn


def roughness(net, x):
    probe = x.clone().requires_grad_(True)
    (slope,) = autograd.grad(net(probe).sum(), probe, create_graph=True)
    return slope.pow(2).sum(dim=1).mean()


def objective(net, x, y, weight):
    logits = net(x).squeeze(1)
    loss = nn.functional.binary_cross_entropy_with_logits(logits, y)
    return loss + weight * roughness(net, x)


def train(args):
    torch.manual_seed(args.seed)
    x = torch.randn(320, 6)
    y = (x[:, 0] * x[:, 1] > 0).float()
    net = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 1))
    optimizer = torch.optim.AdamW(net.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        for rows in torch.randperm(len(x)).split(32):
            loss = objective(net, x[rows], y[rows], args.weight)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=4e-3)
    parser.add_argument("--weight", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=9)
    train(parser.parse_args())
