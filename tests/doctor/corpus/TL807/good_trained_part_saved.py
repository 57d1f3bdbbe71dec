"""The file holds the trained parameters alone: the frozen ones come with the base model."""
import os
import tempfile

import torch
from torch import nn


class Adapted(nn.Module):
    def __init__(self, base, rank=2):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))

    def saver(self, path):
        state = {
            name: value.detach()
            for name, value in self.state_dict(keep_vars=True).items()
            if value.requires_grad
        }
        torch.save(state, path)

    def loader(self, path):
        state = torch.load(path, map_location="cpu", weights_only=True)
        self.load_state_dict(state, strict=False)


def main():
    torch.manual_seed(0)
    base = nn.Linear(4, 4)
    first, second = Adapted(base), Adapted(base)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "adapter.pt")
        first.saver(path)
        second.loader(path)
    x = torch.randn(3, 4)
    assert torch.equal(first(x), second(x))


if __name__ == "__main__":
    main()
