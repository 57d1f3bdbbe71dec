"""The means are weighted by their numbers of targets, the sums divided by that of the whole update,
or the gradients divided at the end."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

torch.manual_seed(0)
sentences = [torch.randint(1, 30, (int(n),)) for n in torch.randint(3, 25, (64,))]
batches = [pad_sequence(sentences[i : i + 4], batch_first=True) for i in range(0, 64, 4)]
windows = [batches[i : i + 4] for i in range(0, 16, 4)]


def make():
    model = nn.Sequential(nn.Embedding(30, 8, padding_idx=0), nn.Linear(8, 30))
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def tokens(batch):
    return (batch[:, 1:] != 0).sum()


model, optimizer = make()
for window in windows:
    total = sum(tokens(batch) for batch in window)
    for batch in window:
        mean = F.cross_entropy(
            model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten(), ignore_index=0
        )
        (mean * tokens(batch) / total).backward()
    optimizer.step()
    optimizer.zero_grad()

model, optimizer = make()
for window in windows:
    total = sum(tokens(batch) for batch in window)
    for batch in window:
        logits = model(batch[:, :-1]).transpose(1, 2)
        loss = F.cross_entropy(logits, batch[:, 1:], ignore_index=0, reduction="sum")
        (loss / total).backward()
    optimizer.step()
    optimizer.zero_grad()

model, optimizer = make()
for window in windows:
    total = 0
    for batch in window:
        logits = model(batch[:, :-1]).transpose(1, 2)
        F.cross_entropy(logits, batch[:, 1:], ignore_index=0, reduction="sum").backward()
        total += tokens(batch)
    for p in model.parameters():
        p.grad /= total
    optimizer.step()
    optimizer.zero_grad()
