import random

import torch
from torch import nn

NOTES = 10
random.seed(3)
torch.manual_seed(3)


def tunes_of(composer):
    steps = random.Random(composer)
    return [[steps.randrange(NOTES) for _ in range(6)] for _ in range(60)]


def in_batches(tunes, size):
    order = torch.randperm(len(tunes)).tolist()
    for start in range(0, len(order), size):
        yield torch.tensor([tunes[i] for i in order[start : start + size]])


def practise(player, tunes):
    matrices = [p for p in player.parameters() if p.ndim > 1]
    vectors = [p for p in player.parameters() if p.ndim <= 1]
    optimizer = torch.optim.AdamW([{"params": matrices}, {"params": vectors}], lr=4e-3)
    for played in in_batches(tunes, 12):
        optimizer.zero_grad()
        scores = player(played[:, 0])
        loss = nn.functional.cross_entropy(scores, played[:, 1])
        loss.backward()
        optimizer.step()
    return loss.item()


player = nn.Sequential(nn.Embedding(NOTES, 8), nn.Linear(8, NOTES))
for composer in range(4):
    print(composer, practise(player, tunes_of(composer)))
