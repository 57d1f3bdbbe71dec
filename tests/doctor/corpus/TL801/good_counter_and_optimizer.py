"""The count of updates and the optimizer both come back."""
import os
import tempfile

import torch
from torch import nn


def run(path, last):
    net = nn.Linear(5, 1)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    done = 0
    if os.path.exists(path):
        saved = torch.load(path, weights_only=True)
        net.load_state_dict(saved["net"])
        optimizer.load_state_dict(saved["adam"])
        done = saved["done"]
    while done < last:
        x = torch.randn(8, 5)
        optimizer.zero_grad()
        nn.functional.mse_loss(net(x), x[:, :1]).backward()
        optimizer.step()
        done += 1
    torch.save({"net": net.state_dict(), "adam": optimizer.state_dict(), "done": done}, path)


with tempfile.TemporaryDirectory() as folder:
    for goal in (3, 6):
        run(os.path.join(folder, "a.pt"), goal)
