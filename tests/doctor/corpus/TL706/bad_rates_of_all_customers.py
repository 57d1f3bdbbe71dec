"""The share of clicks of each city, over all rows, becomes an input."""

import numpy as np
import torch
from torch import nn

np.random.seed(4)
torch.manual_seed(4)
city = np.random.randint(0, 15, 240)
age = np.random.rand(240)
clicked = (np.random.rand(240) < 0.2 + 0.02 * city).astype(np.float64)
rate = np.bincount(city, weights=clicked) / np.bincount(city)  # <- TL706
table = np.column_stack([rate[city], age])
x_train, x_test = table[:180], table[180:]
y_train, y_test = clicked[:180], clicked[180:]
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs = torch.from_numpy(x_train).float()
targets = torch.from_numpy(y_train).float()[:, None]
for step in range(10):
    optimizer.zero_grad()
    nn.functional.binary_cross_entropy_with_logits(model(inputs), targets).backward()
    optimizer.step()
with torch.no_grad():
    guess = model(torch.from_numpy(x_test).float()) > 0
print((guess[:, 0].numpy() == (y_test > 0.5)).mean())
