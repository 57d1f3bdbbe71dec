"""A function that takes a model or its state and saves the state of either."""
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import nn


def save_checkpoint(path, model, *, step=None):
    payload = {"model": model if isinstance(model, Mapping) else model.state_dict()}
    if step is not None:
        payload["step"] = int(step)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    torch.save(payload, path)


def main():
    net = nn.Linear(4, 2)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run", "last.pt")
        save_checkpoint(path, net, step=1)
        save_checkpoint(path, net.state_dict())
        net.load_state_dict(torch.load(path)["model"])


if __name__ == "__main__":
    main()
