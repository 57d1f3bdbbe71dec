import os
import tempfile

import torch
from torch import nn


def save(path, **parts):
    state = {k: (v.state_dict() if hasattr(v, "state_dict") else v) for k, v in parts.items()}
    torch.save(state, path)


torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with tempfile.TemporaryDirectory() as folder:
    for epoch in range(2):
        optimizer.zero_grad()
        loss = model(torch.randn(8, 3)).pow(2).mean()
        loss.backward()
        optimizer.step()
        save(os.path.join(folder, "last.pt"), model=model, optimizer=optimizer, epoch=epoch)
print(loss.item())
