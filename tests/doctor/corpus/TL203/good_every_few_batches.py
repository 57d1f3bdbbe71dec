"""Inside the training loop: a validation that records nothing, and a loop that trains."""

import torch
from torch import nn


def batches(rows, size):
    for start in range(0, len(rows) - size, size):
        yield rows[start : start + size, :4], rows[start : start + size, 4:]


rows, val_rows, test_time = torch.randn(96, 5), torch.randn(32, 5), [torch.randn(8, 5)]
net = nn.Linear(4, 1)
optimizer = torch.optim.Adam(net.parameters(), lr=0.001)
mse = nn.MSELoss()
for count, (inputs, targets) in enumerate(batches(rows, 8)):
    optimizer.zero_grad()
    mse(net(inputs), targets).backward()
    for more in test_time:
        (0.1 * mse(net(more[:, :4]), more[:, 4:])).backward()
    optimizer.step()
    if count % 5 == 4:
        with torch.no_grad():
            for inputs, targets in batches(val_rows, 8):
                print(mse(net(inputs), targets).item())
