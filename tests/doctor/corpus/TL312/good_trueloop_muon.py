"""The library divides the parameters."""

import torch
import torch.nn.functional as F
from torch import nn

import trueloop


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
muon, adamw = trueloop.optimizers.muon(model, lr=0.02)

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
