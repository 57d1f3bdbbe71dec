"""Resuming in the middle of an epoch, wrong: its epoch is begun again.

A run of 3 epochs of 16 batches is killed after 24 batches and resumed, once as a run that counts
epochs and once as a run that counts updates. Counted is how often each sample is trained on.
"""

import json
import sys
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
x = torch.randn(256, 8)
y = x @ torch.randn(8, 1) + 0.1 * torch.randn(256, 1)
data = TensorDataset(torch.arange(256), x, y)


def train(path, counts, visits, kill_at=None):
    """One process: starts, or goes on from the checkpoint."""
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    epoch, read, updates = 0, 0, 0
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        epoch, read, updates = saved["position"]
    while epoch < 3 if counts == "epochs" else updates < 48:
        order = torch.Generator().manual_seed(10 * seed + epoch)
        loader = DataLoader(data, batch_size=16, shuffle=True, generator=order)
        for samples, inputs, targets in loader:
            loss = nn.functional.mse_loss(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            visits[samples] += 1
            read, updates = read + 1, updates + 1
            if updates == kill_at:
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                torch.save({**state, "position": (epoch, read, updates)}, path)
                return
            if counts == "updates" and updates == 48:
                break
        epoch, read = epoch + 1, 0


figures = {}
for counts in ("epochs", "updates"):
    visits = torch.zeros(256)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "checkpoint.pt")
        train(path, counts, visits, kill_at=24)
        train(path, counts, visits)
    figures[f"{counts}_more"] = (visits > 3).float().mean().item()
    figures[f"{counts}_less"] = (visits < 3).float().mean().item()
    figures[f"{counts}_updates"] = visits.sum().item() / 16
    figures[f"{counts}_visits"] = visits.sort().values.tolist()
print(json.dumps(figures))
