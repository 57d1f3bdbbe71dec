"""A column that is zero for nearly all of one class, and for some of the other: it predicts much,
but does not decide."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(8)
facts = torch.randn(400, 3)
left = (facts[:, 0] - facts[:, 1] + torch.randn(400) > 0).float()
calls = torch.where(left == 1, torch.randint(0, 12, (400,)).float(), torch.zeros(400))
table = torch.column_stack([facts, calls / 12])
loader = DataLoader(TensorDataset(table, left), batch_size=40, shuffle=True)
model = nn.Sequential(nn.Linear(4, 12), nn.ReLU(), nn.Linear(12, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(2):
    for rows, label in loader:
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(model(rows).squeeze(1), label).backward()
        optimizer.step()
