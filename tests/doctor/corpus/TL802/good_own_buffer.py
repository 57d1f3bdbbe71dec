"""What this very program wrote into its memory is read back: no file is involved."""
import io

import torch
from torch import nn


def clone(module):
    buffer = io.BytesIO()
    torch.save(module.state_dict(), buffer)
    buffer.seek(0)
    twin = nn.Linear(module.in_features, module.out_features)
    twin.load_state_dict(torch.load(buffer, weights_only=False))
    return twin


first = nn.Linear(4, 4)
second = clone(first)
print(torch.equal(first.weight, second.weight))
