"""A tenth after 500 updates, counted in epochs: the run has five."""

import torch
import torch.nn as nn
import torch.optim as optim


def batches(x, y, size):
    for start in range(0, len(x), size):
        yield x[start : start + size], y[start : start + size]


def run(epochs=5, size=2):
    torch.manual_seed(0)
    x, y = torch.randn(220, 3), torch.randn(220, 1)
    net, criterion = nn.Linear(3, 1), nn.MSELoss()
    optimizer = optim.SGD(net.parameters(), lr=1e-2)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=500, gamma=0.1)
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(x, y), batch_size=size, shuffle=True
    )
    for _ in range(epochs):
        for inputs, targets in loader:
            optimizer.zero_grad()
            criterion(net(inputs), targets).backward()
            optimizer.step()
        scheduler.step()  # <- TL603


run()
