"""A model of matrices alone, its head tied to the embedding, handed to Muon as a whole."""

import torch
import torch.nn.functional as F
from torch import nn


class Tied(nn.Module):
    def __init__(self, vocab=32, width=16):
        super().__init__()
        self.tokens = nn.Embedding(vocab, width)
        nn.init.normal_(self.tokens.weight, std=0.02)
        self.mix = nn.Linear(width, width, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens)
        x = x + torch.relu(self.mix(x))
        return F.linear(x, self.tokens.weight)


torch.manual_seed(0)
text = torch.randint(32, (40, 16, 9))
model = Tied()
muon = torch.optim.Muon(model.parameters(), lr=0.02)  # <- TL312

for step, batch in enumerate(text):
    tokens, targets = batch[:, :-1], batch[:, 1:]
    loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
    muon.zero_grad()
    loss.backward()
    muon.step()
    if step % 10 == 0:
        print(f"{step}: {loss.item():.3f}")
