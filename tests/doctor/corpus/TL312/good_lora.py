"""Small matrices beside frozen layers, an embedding among them."""

import torch
import torch.nn.functional as F
from torch import nn


class LowRank(nn.Module):
    def __init__(self, base, rank=4):
        super().__init__()
        self.base = base
        self.a = nn.Parameter(torch.randn(rank, base.in_features) / base.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + x @ self.a.T @ self.b.T


class Net(nn.Module):
    def __init__(self, vocab=32, width=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.mix = nn.Linear(width, width)
        self.head = nn.Linear(width, vocab)

    def forward(self, tokens):
        return self.head(torch.relu(self.mix(self.embed(tokens))))


torch.manual_seed(0)
text = torch.randint(32, (40, 16, 9))
model = Net()
model.requires_grad_(False)
model.mix = LowRank(model.mix)
muon = torch.optim.Muon([p for p in model.parameters() if p.requires_grad], lr=0.02)

for step, batch in enumerate(text):
    tokens, targets = batch[:, :-1], batch[:, 1:]
    loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
    muon.zero_grad()
    loss.backward()
    muon.step()
    if step % 10 == 0:
        print(f"{step}: {loss.item():.3f}")
