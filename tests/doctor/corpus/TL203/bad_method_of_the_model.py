"""Validation calls a method of the model, and that its parts: the fault is in the loop."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Recommender(nn.Module):
    def __init__(self, items):
        super().__init__()
        self.items = nn.Embedding(items, 8)
        self.norm = nn.LayerNorm(8)

    def scores(self, seen):
        return self.norm(self.items(seen)).mean(1) @ self.items.weight.T

    def forward(self, seen):
        return self.scores(seen)


torch.manual_seed(0)
data = TensorDataset(torch.randint(0, 20, (64, 5)), torch.randint(0, 20, (64,)))
model = Recommender(20)
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(3):
    model.train()
    for seen, bought in DataLoader(data, batch_size=16, shuffle=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model.scores(seen), bought).backward()
        optimizer.step()
    model.eval()
    hits = 0
    for seen, bought in DataLoader(data, batch_size=16):
        ranked = model.scores(seen)  # <- TL203
        hits += (ranked.argmax(1) == bought).sum().item()
    print(epoch, hits)
