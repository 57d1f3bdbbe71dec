"""Since torch 2.6 the default is `weights_only=True`."""
import tempfile
from pathlib import Path

import torch
from torch import nn


def restore(model, path, device="cpu"):
    model.load_state_dict(torch.load(path, map_location=torch.device(device)))
    return model


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weights.pt"
        torch.save(nn.Linear(2, 2).state_dict(), path)
        model = restore(nn.Linear(2, 2), path)
    print(sum(p.numel() for p in model.parameters()))


if __name__ == "__main__":
    main()
