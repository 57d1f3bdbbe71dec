"""Micro-batches are collated by hand; the loss divides by their number, in an inner loop."""

import torch
from torch import nn
import torch.nn.functional as F

PAD, WORDS = 0, 20


def sentence():
    return torch.randint(1, WORDS, (int(torch.randint(2, 30, (1,))),))


def collate(rows):
    longest = max(len(each) for each in rows)
    source = torch.full((len(rows), longest), PAD)
    target = torch.full((len(rows), longest), PAD)
    for i, each in enumerate(rows):
        source[i, : len(each)] = each
        target[i, : len(each)] = each.flip(0)
    return source, target


class Trainer:
    def __init__(self, model, accumulate=4):
        self.model, self.accumulate = model, accumulate
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)

    def update(self, batches):
        self.optimizer.zero_grad()
        for source, target in batches:
            logits = self.model(source).flatten(0, 1)
            loss = F.cross_entropy(logits, target.flatten(), ignore_index=PAD)  # <- TL510
            (loss / self.accumulate).backward()
        self.optimizer.step()


torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(WORDS, 16, padding_idx=PAD), nn.Linear(16, WORDS))
trainer = Trainer(model)
for _ in range(20):
    trainer.update([collate([sentence() for _ in range(3)]) for _ in range(trainer.accumulate)])
