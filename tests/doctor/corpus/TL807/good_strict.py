import io

import torch
from torch import nn

source = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))
file = io.BytesIO()
torch.save(source.state_dict(), file)
file.seek(0)
model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))
model.load_state_dict(torch.load(file))
model.eval()
with torch.no_grad():
    print(model(torch.ones(2, 3)).sum().item())
