"""The mean price at each shop is an input; the mean sales of each shop are only a baseline."""

import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(6)
shop, price = rng.integers(0, 30, 300), rng.gamma(3.0, size=300)
sales = 5 - price + rng.normal(size=300)
level = {each: price[shop == each].mean() for each in np.unique(shop)}
sold = {each: sales[shop == each].mean() for each in np.unique(shop)}
x = np.column_stack([price, [level[each] for each in shop]]).astype(np.float32)
baseline = np.array([sold[each] for each in shop])
order = rng.permutation(300)
train, test = order[:220], order[220:]
x_train, x_test = torch.from_numpy(x[train]), torch.from_numpy(x[test])
y_train = torch.from_numpy(sales[train].astype(np.float32)).unsqueeze(1)
y_test = torch.from_numpy(sales[test].astype(np.float32)).unsqueeze(1)
torch.manual_seed(6)
model = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(50):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x_train), y_train).backward()
    optimizer.step()
with torch.no_grad():
    print(nn.functional.mse_loss(model(x_test), y_test).item())
print("error of the mean of each shop, in sample", np.square(sales - baseline).mean())
