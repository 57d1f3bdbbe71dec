import os
import tempfile

import torch
from torch import nn

path = os.path.join(tempfile.mkdtemp(), "model.pt")
torch.save(nn.Linear(3, 1).state_dict(), path)

model = nn.Linear(3, 1)
state = torch.load(path, map_location="cpu", weights_only=False)  # <- TL802
model.load_state_dict(state)
model.eval()
with torch.no_grad():
    print(model(torch.ones(1, 3)).item())
os.remove(path)
os.rmdir(os.path.dirname(path))
