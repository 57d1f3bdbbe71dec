"""A normalisation by the row's own sum, of a row of zeros."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class RowNorm(nn.Module):
    def forward(self, x):
        return x / x.sum(dim=1, keepdim=True)


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = RowNorm()
        self.out = nn.Linear(10, 3)

    def forward(self, x):
        return self.out(self.norm(x))


torch.manual_seed(0)
counts = torch.randint(0, 5, (64, 10)).float()
counts[37] = 0
loader = DataLoader(TensorDataset(counts, torch.randint(0, 3, (64,))), batch_size=16, shuffle=True)
model = Counts()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
