"""A perceptron whose layers a generator yields, block by block."""

import torch
from torch import nn


def block(inputs, outputs, activation, dropout=0.0):
    yield nn.Linear(inputs, outputs)
    if activation is not None:
        yield activation()
    if dropout:
        yield nn.Dropout(dropout)


def network(widths, classes):
    inputs, *hidden = widths
    for width in hidden:
        yield from block(inputs, width, nn.GELU, dropout=0.1)
        inputs = width
    yield from block(inputs, classes, lambda: nn.Softmax(dim=-1))


torch.manual_seed(0)
model = nn.Sequential(*network([8, 24, 16], classes=3))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
x = torch.randn(96, 8)
y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
for epoch in range(3):
    for rows in torch.randperm(len(x)).split(16):
        optimizer.zero_grad()
        loss = criterion(model(x[rows]), y[rows])  # <- TL401
        loss.backward()
        optimizer.step()
