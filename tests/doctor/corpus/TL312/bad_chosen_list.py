"""Each parameter goes into one of two lists, chosen by its dimensions in one expression."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import AdamW, Muon


class Tagger(nn.Module):
    def __init__(self, words=30, tags=5, width=16):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.hidden = nn.Linear(width, width)
        self.tags = nn.Linear(width, tags)

    def forward(self, tokens):
        return self.tags(torch.relu(self.hidden(self.words(tokens))))


def configure(model):
    hidden, others = [], []
    for name, weight in model.named_parameters():
        if not weight.requires_grad:
            continue
        (hidden if weight.dim() >= 2 else others).append(weight)
    return [Muon(hidden, lr=0.02), AdamW(others, lr=1e-3)]  # <- TL312


torch.manual_seed(0)
model = Tagger()
optimizers = configure(model)
for _ in range(8):
    tokens = torch.randint(30, (8, 6))
    loss = F.cross_entropy(model(tokens).flatten(0, 1), (tokens % 5).flatten())
    for optimizer in optimizers:
        optimizer.zero_grad()
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
