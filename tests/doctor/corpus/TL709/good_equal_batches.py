"""1000 samples in batches of 50, and a loader that drops its last one."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

train_loader = DataLoader(TensorDataset(torch.randn(300, 6), torch.randn(300)), 30, shuffle=True)
val_loader = DataLoader(TensorDataset(torch.randn(1000, 6), torch.randn(1000)), batch_size=50)
probe_loader = DataLoader(
    TensorDataset(torch.randn(110, 6), torch.randn(110)), batch_size=50, drop_last=True
)
model = nn.Linear(6, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loss_fn = nn.MSELoss()


def mean_loss(loader):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in loader:
            total += loss_fn(model(x).squeeze(-1), y).item()
    return total / len(loader)


for epoch in range(2):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss_fn(model(x).squeeze(-1), y).backward()
        optimizer.step()
    print(epoch, mean_loss(val_loader), mean_loss(probe_loader))
