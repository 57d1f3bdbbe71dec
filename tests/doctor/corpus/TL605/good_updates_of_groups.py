"""The schedule counts the groups of eight micro-batches for each of which it steps."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS, MICRO, GROUP = 5, 8, 8


def grouped(loader, size):
    group = []
    for batch in loader:
        group.append(batch)
        if len(group) == size:
            yield group
            group = []


torch.manual_seed(0)
x = torch.randn(256, 6)
data = TensorDataset(x, x.sum(1, keepdim=True))
loader = DataLoader(data, batch_size=MICRO, shuffle=True)
model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = EPOCHS * (len(loader) // GROUP)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=total)
for epoch in range(EPOCHS):
    for group in grouped(loader, GROUP):
        optimizer.zero_grad()
        for inputs, targets in group:
            loss = nn.functional.mse_loss(model(inputs), targets) / len(group)
            loss.backward()
        optimizer.step()
        scheduler.step()
    print(epoch, loss.item())
