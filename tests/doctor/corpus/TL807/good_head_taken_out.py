"""The keys that do not fit are taken out by name: what is missing is known."""
import io

import torch
from torch import nn


def make(classes):
    model = nn.Sequential()
    model.add_module("backbone", nn.Linear(6, 8))
    model.add_module("relu", nn.ReLU())
    model.add_module("head", nn.Linear(8, classes))
    return model


def main():
    file = io.BytesIO()
    torch.save(make(10).state_dict(), file)

    model = make(3)
    file.seek(0)
    state = torch.load(file, map_location="cpu")
    del state["head.weight"], state["head.bias"]
    model.load_state_dict(state, strict=False)

    other = make(5)
    file.seek(0)
    state = torch.load(file, map_location="cpu")
    kept = {k: v for k, v in state.items() if k in other.state_dict() and not k.startswith("head")}
    other.load_state_dict(kept, strict=False)


if __name__ == "__main__":
    main()
