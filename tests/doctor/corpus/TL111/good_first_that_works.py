"""The loop tries one way after another, and returns what the first that works has collected."""

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
x, y = torch.randn(16, 3), torch.randn(16, 1)
net = nn.Linear(3, 1)


def fit():
    log = []
    for rate in (0.1, 0.01):
        try:
            opt = torch.optim.SGD(net.parameters(), lr=rate)
            for _ in range(3):
                opt.zero_grad()
                loss = nn.functional.mse_loss(net(x), y)
                loss.backward()
                opt.step()
                log.append(loss.item())
        except RuntimeError:
            log.clear()
        else:
            return log


print(fit())
