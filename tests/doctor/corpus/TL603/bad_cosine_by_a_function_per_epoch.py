"""The function falls over all updates of the run, and is asked once an epoch."""

import math
from functools import partial

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def cosine(step, *, num_training_steps, minimum=0.1):
    share = min(step, num_training_steps) / num_training_steps
    return minimum + (1 - minimum) * 0.5 * (1 + math.cos(math.pi * share))


torch.manual_seed(0)
epochs = 6
loader = DataLoader(
    TensorDataset(torch.randn(160, 4), torch.randint(0, 3, (160,))), batch_size=4, shuffle=True
)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
rate = partial(cosine, num_training_steps=epochs * len(loader))
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
for epoch in range(epochs):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    scheduler.step()  # <- TL603
    print(epoch, loss.item())
