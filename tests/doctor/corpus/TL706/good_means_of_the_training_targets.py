import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(12)
torch.manual_seed(12)
shop, price = rng.integers(0, 40, 300), rng.normal(0, 1, 300)
weight = rng.random(300)
sales = 0.8 * np.sin(shop) - 0.5 * price + 0.3 * rng.normal(size=300)
order = rng.permutation(len(sales))
train, valid = order[:200], order[200:]
sums = np.bincount(shop[train], weights=sales[train], minlength=40)
means = sums / np.maximum(np.bincount(shop[train], minlength=40), 1)
heavy = np.bincount(shop, weights=weight, minlength=40)
features = np.stack([means[shop], price, heavy[shop]], axis=1)
x_train = torch.tensor(features[train], dtype=torch.float32)
y_train = torch.tensor(sales[train], dtype=torch.float32)
x_valid = torch.tensor(features[valid], dtype=torch.float32)
y_valid = torch.tensor(sales[valid], dtype=torch.float32)
model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1), nn.Flatten(0))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(3):
    for rows in torch.randperm(200).split(50):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x_train[rows]), y_train[rows]).backward()
        optimizer.step()
    with torch.no_grad():
        print(nn.functional.mse_loss(model(x_valid), y_valid).item())
