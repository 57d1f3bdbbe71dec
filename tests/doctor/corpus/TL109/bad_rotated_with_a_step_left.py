import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)
train_dl = DataLoader(TensorDataset(torch.randn(32, 4), torch.rand(32, 1)), batch_size=8, shuffle=True)
mlp = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 1))
optim = torch.optim.RMSprop(mlp.parameters(), lr=1e-3)
loss_fn = nn.L1Loss()
updates, max_updates = 0, 8

while updates < max_updates:
    for xb, yb in train_dl:
        loss = loss_fn(mlp(xb), yb)
        loss.backward()
        optim.step()
        if updates % 2 == 0:
            print(updates, round(loss.item(), 4))
        updates += 1
        optim.step()  # <- TL109
        optim.zero_grad()
