"""Fits a noisy linear teacher with gradients accumulated over four batches.

The cosine ticks once per update, and its length is the number of updates.
"""

import json
import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

EPOCHS = 15
ACCUMULATE = 4

teacher = torch.randn(40, 1)
train_x = torch.randn(512, 40)
train_y = train_x @ teacher + 2.0 * torch.randn(512, 1)
loader = DataLoader(TensorDataset(train_x, train_y), batch_size=8, shuffle=True)
best = torch.linalg.lstsq(train_x.double(), train_y.double()).solution.float()
best_loss = F.mse_loss(train_x @ best, train_y).item()

model = nn.Linear(40, 1, bias=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
updates = EPOCHS * len(loader) // ACCUMULATE
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=updates)
rates = []
excess = []

for _ in range(EPOCHS):
    for index, (x, y) in enumerate(loader, start=1):
        loss = F.mse_loss(model(x), y) / ACCUMULATE
        loss.backward()
        if index % ACCUMULATE == 0:
            rates.append(scheduler.get_last_lr()[0])
            optimizer.step()
            optimizer.zero_grad()
            scheduler.step()
            with torch.no_grad():
                excess.append(F.mse_loss(model(train_x), train_y).item() - best_loss)

print(
    json.dumps(
        {
            "rate": rates,
            "last_rate": rates[-1] / rates[0],
            "excess": excess,
            "last_excess": sum(excess[-16:]) / 16,
        }
    )
)
