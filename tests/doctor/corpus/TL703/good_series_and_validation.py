"""A series read in its order, and a validation set whose classes follow one another."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

series = torch.sin(torch.arange(0, 60, 0.25))
windows = series.unfold(0, 9, 1)
train_loader = DataLoader(TensorDataset(windows[:, :8], windows[:, 8:]), batch_size=29)

val_x = torch.cat([torch.randn(40, 8), torch.randn(40, 8) + 1])
val_y = torch.cat([torch.zeros(40), torch.ones(40)])
val_loader = DataLoader(TensorDataset(val_x, val_y), batch_size=20, shuffle=False)

model = nn.Linear(8, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(2):
    model.train()
    for past, future in train_loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(past), future).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        above = sum(((model(x)[:, 0] > 0).float() == y).sum().item() for x, y in val_loader)
    print(epoch, above / len(val_y))
