"""Who leaves: one column is zero for all who stay, and only for them."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(7)
facts = torch.randn(400, 3)
left = (facts[:, 0] - facts[:, 1] + torch.randn(400) > 0).float()
days = torch.where(left == 1, torch.randint(1, 90, (400,)).float(), torch.zeros(400))
table = torch.column_stack([facts, days / 90])
loader = DataLoader(TensorDataset(table, left), batch_size=40, shuffle=True)  # <- TL710
model = nn.Sequential(nn.Linear(4, 12), nn.ReLU(), nn.Linear(12, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(2):
    for rows, label in loader:
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(model(rows).squeeze(1), label).backward()
        optimizer.step()
