"""A network and an optimizer for each level, in one table: no optimizer steps."""

import argparse

import torch
from torch import nn


def make_levels(args):
    parts = {"levels": args.levels}
    for level in range(parts["levels"]):
        net = nn.Linear(4, 4)
        parts[f"net_{level}"] = net
        parts["optim_{}".format(level)] = torch.optim.Adam(net.parameters(), lr=1e-3)
    return parts


def train(args):
    parts = make_levels(args)
    for step in range(args.steps):
        x, losses = torch.randn(8, 4), {}
        for level in range(parts["levels"]):
            optim = parts["optim_{}".format(level)]
            net = parts["net_" + str(level)]
            optim.zero_grad()
            loss = (net(x) - x.roll(level, 1)).pow(2).mean()
            loss.backward()  # <- TL106
            losses[f"level_{level}"] = loss.item()
        if step % 50 == 0:
            print(step, losses)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--levels", type=int, default=2)
    parser.add_argument("--steps", type=int, default=150)
    train(parser.parse_args())
