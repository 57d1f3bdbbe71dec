"""Of the sorted scores the values are collected as well: they have the graph, the ranks have not."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 5))

    def forward(self, x):
        scores = self.layers(x)
        values, ranks = torch.sort(scores, dim=1, descending=True)
        return scores, {"values": values, "ranks": ranks}


torch.manual_seed(0)
loader = DataLoader(
    TensorDataset(torch.randn(640, 6), torch.randint(0, 5, (640,))), batch_size=8, shuffle=True
)
scorer = Scorer()
optimizer = torch.optim.Adam(scorer.parameters(), lr=1e-3)
ranks, margins = [], []
for epoch in range(3):
    for x, y in loader:
        scores, facts = scorer(x)
        optimizer.zero_grad()
        nn.functional.cross_entropy(scores, y).backward()
        optimizer.step()
        ranks.append(facts["ranks"][:, 0])
        margins.append(facts["values"][:, :2])  # <- TL204
print(torch.cat(ranks).bincount(), torch.cat(margins).mean(0).tolist())
