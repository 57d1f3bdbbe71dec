import os
import tempfile

import torch
from torch import nn
from torch.nn import functional as F

x, y = torch.randn(100, 5), torch.randn(100, 1)
model = nn.Linear(5, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
best = float("inf")
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "best.pt")
    for epoch in range(5):
        model.train()
        optimizer.zero_grad()
        loss = F.mse_loss(model(x[:80]), y[:80])
        loss.backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            val_loss = F.mse_loss(model(x[80:]), y[80:]).item()
        if val_loss < best:
            best = val_loss
            state = model.state_dict()
            torch.save({"epoch": epoch, "state": state}, path)
    model.load_state_dict(torch.load(path, weights_only=True)["state"])
