"""A generator draws the batches of an epoch; the one-cycle schedule counts them all."""

import torch
from torch import nn

EPOCHS = 10
DRAWS = 12


def drawn(inputs, targets, draws=DRAWS):
    for _ in range(draws):
        rows = torch.randint(0, len(inputs), (16,))
        yield inputs[rows], targets[rows]


def main():
    torch.manual_seed(1)
    inputs = torch.randn(200, 5)
    targets = (inputs[:, 1] + inputs[:, 2] > 0).long()
    net = nn.Linear(5, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    cycle = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=0.5, total_steps=EPOCHS * DRAWS
    )
    for epoch in range(EPOCHS):
        for x, y in drawn(inputs, targets):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
        cycle.step()  # <- TL603


main()
