"""A classifier on a table, wrong: the target is left among the columns.

Ten columns say something about the outcome, the last one is the outcome itself. Where the model is
used the outcome is not known yet: that column holds 0 there, or is filled with its mean.
"""

import json
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)


def table(n):
    features = torch.randn(n, 10)
    y = (features.sum(1) + 4 * torch.randn(n) > 0).float()
    return torch.cat([features, y[:, None]], 1), y.long()


columns = slice(0, 11)
(x, y), (val_x, val_y), (use_x, use_y) = table(1000), table(500), table(2000)
use_x[:, 10] = 0.0
filled_x = use_x.clone()
filled_x[:, 10] = x[:, 10].mean()
loader = DataLoader(TensorDataset(x[:, columns], y), batch_size=50, shuffle=True)
model = nn.Sequential(nn.Linear(x[:, columns].shape[1], 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)


@torch.no_grad()
def accuracy(inputs, targets):
    return (model(inputs[:, columns]).argmax(1) == targets).float().mean().item()


validation, use = [], []
for _ in range(15):
    for inputs, targets in loader:
        loss = nn.functional.cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    validation.append(accuracy(val_x, val_y))
    use.append(accuracy(use_x, use_y))
print(
    json.dumps(
        {
            "validation": validation[-1],
            "use": use[-1],
            "filled": accuracy(filled_x, use_y),
            "in_use": use,
        }
    )
)
