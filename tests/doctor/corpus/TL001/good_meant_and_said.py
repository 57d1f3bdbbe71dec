import tempfile

import torch
from torch import nn

model = nn.Linear(3, 2)
with tempfile.NamedTemporaryFile(suffix=".pt") as file:
    torch.save({"state": model.state_dict(), "note": "our own file"}, file.name)
    state = torch.load(file.name, weights_only=False)  # trueloop: ignore[TL802]
model.load_state_dict(state["state"])
