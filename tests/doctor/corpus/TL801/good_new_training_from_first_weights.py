"""One option resumes a run with all its state; another begins a new one from weights in a file."""

import argparse
import os
import tempfile

import torch
from torch import nn


def run(args):
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    if args.resume and os.path.isfile(args.resume):
        checkpoint = torch.load(args.resume, weights_only=True)
        args.start_epoch = checkpoint["epoch"]
        model.load_state_dict(checkpoint["state_dict"])
        optimizer.load_state_dict(checkpoint["optimizer"])
    if args.scratch:
        model = nn.Linear(4, 2)
        checkpoint = torch.load(args.scratch, weights_only=True)
        model.load_state_dict(checkpoint["state_dict"])
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(args.start_epoch, args.epochs):
        for _ in range(20):
            x = torch.randn(8, 4)
            loss = (model(x) - x[:, :2]).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        state = {"epoch": epoch + 1, "state_dict": model.state_dict()}
        torch.save({**state, "optimizer": optimizer.state_dict()}, args.save)
        print(epoch, loss.item())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--resume", default="")
    parser.add_argument("--scratch", default="")
    parser.add_argument("--start_epoch", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--save", default=os.path.join(tempfile.mkdtemp(), "checkpoint.pt"))
    run(parser.parse_args())
