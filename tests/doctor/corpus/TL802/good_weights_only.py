import os
import tempfile

import torch
from torch import nn

path = os.path.join(tempfile.mkdtemp(), "model.pt")
torch.save({"net": nn.Linear(3, 1).state_dict(), "epoch": 4}, path)

net = nn.Linear(3, 1)
checkpoint = torch.load(path, map_location="cpu", weights_only=True)
net.load_state_dict(checkpoint["net"])
net.eval()
with torch.no_grad():
    print(net(torch.ones(1, 3)).item())
os.remove(path)
os.rmdir(os.path.dirname(path))
