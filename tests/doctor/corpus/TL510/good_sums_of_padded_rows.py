"""Padded by hand: the sum is divided by all targets of the update; and rows of one length."""

import torch
from torch import nn
import torch.nn.functional as F

PAD, WORDS = 0, 20


def collate(rows):
    target = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.long)
    for i, each in enumerate(rows):
        target[i, : len(each)] = each
    return target


def blocks(rows):
    target = torch.zeros(len(rows), 8, dtype=torch.long)
    for i, each in enumerate(rows):
        target[i, :8] = each[:8]
    return target


torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(WORDS, 16), nn.Linear(16, WORDS))
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
for step in range(20):
    rows = [torch.randint(1, WORDS, (8 + step % 3 + i,)) for i in range(8)]
    padded = [collate(rows[:4]), collate(rows[4:])]
    count = sum((each != PAD).sum() for each in padded)
    optimizer.zero_grad()
    for target in padded:
        logits = model(target).transpose(1, 2)
        loss = F.cross_entropy(logits, target, ignore_index=PAD, reduction="sum")
        (loss / count).backward()
    optimizer.step()
    optimizer.zero_grad()
    for part in (rows[:4], rows[4:]):
        target = blocks(part)
        loss = F.cross_entropy(model(target).transpose(1, 2), target, ignore_index=PAD)
        (loss / 2).backward()
    optimizer.step()
