"""The indices of the nearest codes and of the sorted scores are whole numbers: they have no graph."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Codebook(nn.Module):
    def __init__(self, size, width):
        super().__init__()
        self.codes = nn.Embedding(size, width)

    def forward(self, z):
        distance = (z.unsqueeze(1) - self.codes.weight).pow(2).sum(2)
        nearest = torch.argmin(distance, dim=1)
        chosen = self.codes(nearest)
        lost = (chosen - z.detach()).pow(2).mean() + 0.25 * (chosen.detach() - z).pow(2).mean()
        order = torch.sort(distance, dim=1)[1]
        return z + (chosen - z).detach(), lost, {"nearest": nearest.unsqueeze(1), "order": order}


class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(6, 4), nn.Linear(4, 6)
        self.codebook = Codebook(8, 4)

    def forward(self, x):
        code, lost, facts = self.codebook(self.inner(x))
        return self.outer(code), lost, facts


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(640, 6)), batch_size=8, shuffle=True)
coder = Coder()
optimizer = torch.optim.Adam(coder.parameters(), lr=1e-3)
used = {"nearest": [], "ranks": [], "far": []}
for epoch in range(1):
    for (x,) in loader:
        back, lost, facts = coder(x)
        loss = nn.functional.mse_loss(back, x) + lost
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        used["nearest"].append(facts["nearest"].squeeze(1).cpu())
        used["ranks"].append(facts["order"].argsort(dim=1))
        used["far"].append(torch.gt((back - x).abs(), 1.0))
print({name: len(torch.cat(parts).unique()) for name, parts in used.items()})
