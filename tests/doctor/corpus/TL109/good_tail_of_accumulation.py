import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(40, 4), torch.randn(40, 1)), batch_size=8, shuffle=True)
model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
accumulate = 2

for epoch in range(2):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader, 1):
        (nn.functional.mse_loss(model(x), y) / accumulate).backward()
        if i % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
    if len(loader) % accumulate:
        optimizer.step()  # the batches that are left over
        optimizer.zero_grad()
