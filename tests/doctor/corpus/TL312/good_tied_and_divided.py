"""The head is the embedding: one parameter, which AdamW has."""

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Bigram(nn.Module):
    def __init__(self, vocab=32, width=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.blocks = nn.Sequential(Block(width), Block(width))
        self.head = nn.Linear(width, vocab, bias=False)

    def forward(self, tokens):
        return self.head(self.blocks(self.embed(tokens)))


torch.manual_seed(0)
text = torch.randint(32, (40, 16, 9))
model = Bigram()
nn.init.normal_(model.embed.weight, std=0.02)
model.head.weight = model.embed.weight
tied = id(model.embed.weight)
hidden = [p for p in model.parameters() if p.ndim == 2 and id(p) != tied]
others = [p for p in model.parameters() if p.ndim < 2 or id(p) == tied]
muon = torch.optim.Muon(hidden, lr=0.02)
adamw = torch.optim.AdamW(others, lr=1e-3)

for step, batch in enumerate(text):
    tokens, targets = batch[:, :-1], batch[:, 1:]
    loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
    for optimizer in (muon, adamw):
        optimizer.zero_grad()
    loss.backward()
    for optimizer in (muon, adamw):
        optimizer.step()
    if step % 10 == 0:
        print(f"{step}: {loss.item():.3f}")
