"""The schedule is made anew, and its function counts on from the epoch in the file."""

import tempfile
from pathlib import Path

import torch
from torch import nn, optim


def train(file, epochs):
    net = nn.Linear(3, 1)
    optimizer = optim.Adam(net.parameters(), lr=1e-2)
    begin = 0
    if file.exists():
        saved = torch.load(file, weights_only=True)
        net.load_state_dict(saved["net"])
        optimizer.load_state_dict(saved["optimizer"])
        begin = saved["epoch"] + 1
    scheduler = optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.9 ** (begin + epoch))
    for epoch in range(begin, epochs):
        for _ in range(4):
            x = torch.randn(8, 3)
            optimizer.zero_grad()
            nn.functional.mse_loss(net(x), x.mean(1, keepdim=True)).backward()
            optimizer.step()
        scheduler.step()
        saved = {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
        torch.save(saved, file)


torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    train(Path(folder) / "run.pt", 4)
    train(Path(folder) / "run.pt", 8)
