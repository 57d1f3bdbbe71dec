"""Where a target is missing, its loss is left out: before it is computed, or after."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x, y = torch.randn(64, 4), torch.randn(64, 3)
y[torch.rand(64, 3) < 0.3] = float("nan")
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for inputs, targets in loader:
    prediction = model(inputs)
    known = ~targets.isnan()
    loss = nn.functional.mse_loss(prediction[known], targets[known])
    each = nn.functional.l1_loss(prediction, targets, reduction="none")
    loss = loss + each[known].mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
