import os
import tempfile

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

checkpoint_path = os.path.join(tempfile.gettempdir(), "tl801_flat.pt")
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.MSELoss()
loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.randn(64, 1)), 16, shuffle=True)

if not os.path.exists(checkpoint_path):
    torch.save({"epoch": 2, "model": model.state_dict()}, checkpoint_path)

start_epoch = 0
if os.path.exists(checkpoint_path):
    checkpoint = torch.load(checkpoint_path, weights_only=True)
    model.load_state_dict(checkpoint["model"])  # <- TL801
    start_epoch = checkpoint["epoch"]
    print(f"resumed from epoch {start_epoch}")

for epoch in range(start_epoch, start_epoch + 2):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    torch.save({"epoch": epoch + 1, "model": model.state_dict()}, checkpoint_path)
os.remove(checkpoint_path)
