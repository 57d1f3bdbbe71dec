import argparse
import os
import tempfile

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--resume", default="")
parser.add_argument("--epochs", type=int, default=4)


def main(args, out):
    model = nn.Linear(3, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    lr_plan = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[2, 6], gamma=0.1)
    start = 0
    if args.resume:
        checkpoint = torch.load(args.resume, weights_only=True)
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])  # <- TL801
        start = checkpoint["epoch"]
    for epoch in range(start, args.epochs):
        for _ in range(3):
            x = torch.randn(8, 3)
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
            optimizer.step()
        lr_plan.step()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save({**state, "epoch": args.epochs}, out)


with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "a.pt")
    main(parser.parse_args([]), file)
    main(parser.parse_args(["--resume", file, "--epochs", "8"]), file)
