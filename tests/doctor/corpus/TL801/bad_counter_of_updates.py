"""The run goes on from the saved number of updates; AdamW begins with empty moments."""
import itertools
import os
import tempfile

import torch
from torch import nn


def batches():
    while True:
        x = torch.randn(16, 6)
        yield x, x.pow(2).sum(1, keepdim=True)


def run(path, start_from, last):
    net = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Linear(16, 1))
    done, best, stream = 0, float("inf"), batches()
    if start_from == "file":
        saved = torch.load(path, weights_only=True)
        net.load_state_dict(saved["net"])  # <- TL801
        done = saved["done"]
        best = saved["best"]
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    while True:
        x, y = next(stream)
        loss = nn.functional.mse_loss(net(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        best = min(best, loss.item())
        done += 1
        if done >= last:
            break
    state = {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "done": done, "best": best}
    torch.save(state, path)


with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "last.pt")
    for start_from, last in itertools.chain([("scratch", 4)], [("file", 8)]):
        run(file, start_from, last)
