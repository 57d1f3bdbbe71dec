"""Written from the wrapper and read back into the wrapper: the keys agree."""
import argparse
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--resume", default="", type=str)
    parser.add_argument("--epochs", default=2, type=int)
    args = parser.parse_args()

    model = nn.DataParallel(nn.Linear(6, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    start_epoch = 0
    if args.resume:
        checkpoint = torch.load(args.resume, weights_only=True)
        start_epoch = checkpoint["epoch"]
        model.load_state_dict(checkpoint["state_dict"])
        optimizer.load_state_dict(checkpoint["optimizer"])

    x, y = torch.randn(30, 6), torch.randint(0, 3, (30,))
    with tempfile.TemporaryDirectory() as folder:
        for epoch in range(start_epoch, args.epochs):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            state = {
                "epoch": epoch + 1,
                "state_dict": model.state_dict(),
                "optimizer": optimizer.state_dict(),
            }
            torch.save(state, os.path.join(folder, "checkpoint.pth.tar"))


if __name__ == "__main__":
    main()
