import random

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

NOTES = 14
random.seed(2)
torch.manual_seed(2)
tunes = [[random.randint(1, NOTES - 1) for _ in range(random.randint(4, 8))] for _ in range(120)]


class Player(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.notes = nn.Embedding(NOTES, width, padding_idx=0)
        self.memory = nn.GRU(width, width, batch_first=True)
        self.next = nn.Linear(width, NOTES)

    def forward(self, played):
        heard, _ = self.memory(self.notes(played))
        return self.next(heard)


def in_batches(tunes, size):
    order = torch.randperm(len(tunes)).tolist()
    for start in range(0, len(order), size):
        chosen = [torch.tensor(tunes[i]) for i in order[start : start + size]]
        yield pad_sequence(chosen, batch_first=True)


def make_optimizer(player):
    matrices = [p for p in player.parameters() if p.ndim > 1]
    vectors = [p for p in player.parameters() if p.ndim <= 1]
    return torch.optim.AdamW(  # <- TL305
        [{"params": matrices, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0.0}],
        lr=4e-3,
    )


def practise(player, tunes):
    optimizer = make_optimizer(player)
    for played in in_batches(tunes, 20):
        guesses = player(played[:, :-1]).transpose(1, 2)
        loss = nn.functional.cross_entropy(guesses, played[:, 1:], ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


player = Player()
for epoch in range(4):
    print(epoch, practise(player, tunes))
