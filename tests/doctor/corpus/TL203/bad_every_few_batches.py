"""Every few batches the training function validates, on batches of its own making."""

import torch
from torch import nn


def batches(rows, size):
    for start in range(0, len(rows) - size, size):
        yield rows[start : start + size, :4], rows[start : start + size, 4:]


def fit(net, rows, every=5):
    rows, val_rows = rows[:96], rows[96:]
    optimizer = torch.optim.Adam(net.parameters(), lr=0.001)
    mse = nn.MSELoss()
    count = 0
    for epoch in range(3):
        for inputs, targets in batches(rows, 8):
            count += 1
            optimizer.zero_grad()
            mse(net(inputs), targets).backward()
            optimizer.step()
            if count % every == 0:
                losses = []
                net.eval()
                for inputs, targets in batches(val_rows, 8):
                    losses.append(mse(net(inputs), targets).item())  # <- TL203
                net.train()
                print(epoch, sum(losses) / len(losses))


fit(nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 1)), torch.randn(128, 5))
