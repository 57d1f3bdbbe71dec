"""The lists are padded by hand, and the sum over the real targets is divided by all of the update."""

import random

import torch
from torch import nn

PAD, KINDS = 0, 7
random.seed(1)
torch.manual_seed(1)
words = [[random.randrange(1, KINDS) for _ in range(random.choice((3, 5, 20)))] for _ in range(60)]


def batch_of(some):
    width = max(len(word) for word in some)
    return torch.tensor([word + [PAD] * (width - len(word)) for word in some])


table = nn.Sequential(nn.Embedding(KINDS, 10), nn.Linear(10, KINDS))
optimizer = torch.optim.SGD(table.parameters(), lr=0.3)
for update in range(8):
    parts = [batch_of(random.sample(words, 5)) for _ in range(3)]
    real = sum((part[:, 1:] != PAD).sum() for part in parts)
    optimizer.zero_grad()
    for part in parts:
        scores = table(part[:, :-1]).transpose(1, 2)
        loss = nn.functional.cross_entropy(scores, part[:, 1:], ignore_index=PAD, reduction="sum")
        (loss / real).backward()
    optimizer.step()
    print(update, loss.item() / real.item())
