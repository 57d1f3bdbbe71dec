"""A second option switches off the one by which the program ends after it has evaluated."""

import argparse
import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--checkpoint", default="")
parser.add_argument("--first-epoch", default=0, type=int)
parser.add_argument("-t", "--test-only", action="store_true", default=True)
parser.add_argument("--train", dest="test_only", action="store_false")
parser.set_defaults(epochs=3)


def main(words):
    args = parser.parse_args(words)
    net = nn.Linear(4, 1)
    if args.checkpoint:
        found = torch.load(args.checkpoint, weights_only=True)
        net.load_state_dict(found["net"])  # <- TL801
        args.first_epoch = found["epoch"]
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    rows = TensorDataset(torch.randn(40, 4), torch.randn(40, 1))
    loader = DataLoader(rows, batch_size=10, shuffle=True)
    if args.test_only:
        with torch.no_grad():
            print(nn.functional.mse_loss(net(rows.tensors[0]), rows.tensors[1]).item())
        return
    for epoch in range(args.first_epoch, args.epochs):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(net(x), y).backward()
            optimizer.step()
        torch.save({"net": net.state_dict(), "epoch": epoch + 1}, args.checkpoint)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "net.pt")
        torch.save({"net": nn.Linear(4, 1).state_dict(), "epoch": 1}, file)
        main(["--train", "--checkpoint", file])
