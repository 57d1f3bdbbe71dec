# trueloop: ignore-file[TL802  # <- TL001
import tempfile

import torch
from torch import nn

model = nn.Linear(3, 2)
with tempfile.NamedTemporaryFile(suffix=".pt") as file:
    torch.save(model.state_dict(), file.name)
    model.load_state_dict(torch.load(file.name, weights_only=True))
