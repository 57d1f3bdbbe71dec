"""Of twelve draws an epoch only those with both classes are handed on, and the schedule counts epochs:
twelve of them, as many as there are draws."""

import torch
from torch import nn

EPOCHS = DRAWS = 12


def drawn(inputs, targets):
    for number in range(DRAWS):
        rows = torch.randint(0, len(inputs), (16,))
        if number % 2 and len(targets[rows].unique()) == 2:
            yield inputs[rows], targets[rows]


torch.manual_seed(3)
inputs = torch.randn(200, 5)
targets = (inputs[:, 1] > 0).long()
net = nn.Linear(5, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
decay = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=EPOCHS)
for epoch in range(EPOCHS):
    for x, y in drawn(inputs, targets):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
    decay.step()
