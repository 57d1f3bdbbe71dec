"""A model goes through a file that is gone when its block ends: nothing is kept."""
import sys
import tempfile

import torch
from torch import nn


def survives_pickling(model, inputs):
    expected = model(inputs)
    with tempfile.NamedTemporaryFile() as file:
        torch.save(model, file.name if sys.platform != "win32" else file)
        file.seek(0)
        twin = torch.load(file.name, weights_only=False)
    return torch.equal(twin(inputs), expected)


net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
assert survives_pickling(net, torch.randn(3, 4))
