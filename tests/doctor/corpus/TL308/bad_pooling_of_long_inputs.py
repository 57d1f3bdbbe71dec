import torch
from torch import nn


def encode(x, longest=12):
    if x.size(1) > longest:
        shorten = nn.Linear(x.size(1), longest)  # <- TL308
        x = shorten(x)
    return x


def batches(n):
    for _ in range(n):
        x = torch.randn(8, 20)
        yield x, x[:, :1]


model = nn.Linear(12, 1)
optimizer = torch.optim.AdamW(model.parameters())
for x, y in batches(6):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(encode(x)), y).backward()
    optimizer.step()
