"""Weights whose file names an epoch are where a new task begins, at its own first epoch; a count
that happens to be the same."""

import torch
import torch.nn as nn

torch.manual_seed(0)
net = nn.Linear(4, 2)
torch.save(net.state_dict(), "pretrained_epoch_3.pt")

tuned = nn.Linear(4, 2)
tuned.load_state_dict(torch.load("pretrained_epoch_3.pt"))
optimizer = torch.optim.Adam(tuned.parameters(), lr=1e-3)
seen, first = 0, 3
while seen < 8:
    x, y = torch.randn(8, 4), torch.randint(0, 2, (8,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(tuned(x), y).backward()
    optimizer.step()
    seen += 1
    first += 1
for epoch in range(2):
    x, y = torch.randn(8, 4), torch.randint(0, 2, (8,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(tuned(x), y).backward()
    optimizer.step()
