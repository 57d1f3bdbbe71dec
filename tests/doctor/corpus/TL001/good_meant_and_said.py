import os
import tempfile

import torch
from torch import nn

model = nn.Linear(3, 2)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "model.pt")
    torch.save({"state": model.state_dict(), "note": "our own file"}, path)
    state = torch.load(path, weights_only=False)  # trueloop: ignore[TL802]
model.load_state_dict(state["state"])
