"""An exponential decay multiplies the restored rate, whatever it has counted."""

import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.optim.lr_scheduler import ExponentialLR


def train(file, epochs):
    net = nn.Linear(3, 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    decay = ExponentialLR(optimizer, gamma=0.9)
    begin = 0
    if file.exists():
        saved = torch.load(file, weights_only=True)
        net.load_state_dict(saved["net"])
        optimizer.load_state_dict(saved["optimizer"])
        begin = saved["epoch"] + 1
    for epoch in range(begin, epochs):
        for _ in range(4):
            x = torch.randn(8, 3)
            optimizer.zero_grad()
            nn.functional.mse_loss(net(x), x.mean(1, keepdim=True)).backward()
            optimizer.step()
        decay.step()
        saved = {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
        torch.save(saved, file)


torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    train(Path(folder) / "run.pt", 4)
    train(Path(folder) / "run.pt", 8)
