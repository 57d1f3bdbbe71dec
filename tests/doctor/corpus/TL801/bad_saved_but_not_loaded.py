import argparse
import os
import tempfile

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def save_checkpoint(path, epoch, model, optimizer):
    torch.save(
        {"epoch": epoch, "state_dict": model.state_dict(), "optimizer": optimizer.state_dict()}, path
    )


def train(model, loader, optimizer):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def main(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--resume", default="", type=str, help="path to latest checkpoint")
    parser.add_argument("--epochs", default=2, type=int)
    parser.add_argument("--out", default="checkpoint.pt")
    args = parser.parse_args(argv)

    model = nn.Linear(10, 3)
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    start_epoch = 0
    if args.resume:
        checkpoint = torch.load(args.resume, map_location="cpu", weights_only=True)
        start_epoch = checkpoint["epoch"] + 1
        model.load_state_dict(checkpoint["state_dict"])  # <- TL801

    loader = DataLoader(TensorDataset(torch.randn(60, 10), torch.randint(0, 3, (60,))), 20, True)
    for epoch in range(start_epoch, args.epochs):
        train(model, loader, optimizer)
        save_checkpoint(args.out, epoch, model, optimizer)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "last.pt")
        main(["--out", file])
        main(["--resume", file, "--epochs", "3", "--out", file])
