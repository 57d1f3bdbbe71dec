"""The crops grow from epoch to epoch: workers that live on would not come to know."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Crops(Dataset):
    def __init__(self):
        self.size = 2

    def __len__(self):
        return 48

    def __getitem__(self, index):
        x = torch.zeros(10)
        x[: self.size] = torch.linspace(0, index / 48, self.size)
        return x, x.mean().reshape(1)


torch.manual_seed(0)
data = Crops()
loader = DataLoader(data, batch_size=8, shuffle=True, num_workers=2)
model = nn.Linear(10, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, fused=True)
for epoch in range(7):
    data.size = 2 + epoch
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
