"""A regression on a table by hand: plateau schedule, early stopping, best weights, R²."""

import copy

import torch
from data import Network, houses
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, StackDataset

EPOCHS, PATIENCE = 40, 6

torch.manual_seed(0)
columns, prices = houses(600, seed=0)
val_columns, val_prices = houses(300, seed=1)
train = DataLoader(StackDataset(StackDataset(**columns), prices), batch_size=50, shuffle=True)
val = DataLoader(StackDataset(StackDataset(**val_columns), val_prices), batch_size=150)
model = Network(columns, prices)
criterion = nn.HuberLoss(delta=50.0)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scheduler = ReduceLROnPlateau(optimizer, factor=0.3, patience=2)
best_loss, best_weights, stale = float("inf"), None, 0

for _ in range(EPOCHS):
    model.train()
    for batch, targets in train:
        optimizer.zero_grad()
        criterion(model(**batch), targets).backward()
        optimizer.step()
    model.eval()
    total, samples = 0.0, 0
    with torch.inference_mode():
        for batch, targets in val:
            total += criterion(model(**batch), targets).item() * len(targets)
            samples += len(targets)
    val_loss = total / samples
    scheduler.step(val_loss)
    if val_loss < best_loss:
        best_loss, best_weights, stale = val_loss, copy.deepcopy(model.state_dict()), 0
    else:
        stale += 1
        if stale == PATIENCE:
            break

model.load_state_dict(best_weights)
model.eval()
with torch.inference_mode():
    residual = torch.cat([targets - model(**batch) for batch, targets in val])
mae = residual.abs().mean().item()
print(f"val_loss {best_loss:.4f}  val_mae {mae:.3f}")
