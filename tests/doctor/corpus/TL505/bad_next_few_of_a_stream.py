"""Each update takes the next three micro-batches of one stream; nothing divides by three."""
from itertools import islice

import torch
from torch import nn


class Rows:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def forever(self, size):
        while True:
            for picked in torch.randperm(len(self.x)).split(size):
                yield self.x[picked], self.y[picked]


torch.manual_seed(0)
x = torch.randn(240, 5)
rows = Rows(x, x @ torch.randn(5, 2))
model = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
batches, window = rows.forever(16), 3
for update in range(12):
    for number, (inputs, targets) in enumerate(islice(batches, window)):
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()  # <- TL505
    optimizer.step()
    optimizer.zero_grad()
    print(update, number, loss.item())
