import io

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
train_loader = DataLoader(TensorDataset(torch.randn(80, 3), torch.randn(80, 1)), 20, shuffle=True)
val_loader = DataLoader(TensorDataset(torch.randn(40, 3), torch.randn(40, 1)), 20)
model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = optim.SGD(model.parameters(), lr=0.05)
criterion = nn.MSELoss(reduction="sum")

best = {"loss": float("inf"), "epoch": -1, "weights": None}
for epoch in range(4):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y) / len(x)
        loss.backward()
        optimizer.step()
    model.eval()
    val_loss = 0.0
    with torch.no_grad():
        for x, y in val_loader:
            val_loss += criterion(model(x), y).item()
    val_loss /= len(val_loader.dataset)
    if val_loss < best["loss"]:
        best = {"loss": val_loss, "epoch": epoch, "weights": model.state_dict()}  # <- TL805

torch.save(best, io.BytesIO())
print("best epoch", best["epoch"])
