"""Next-item prediction: the share of hits among the first five is watched as if it should fall."""

import torch
from torch import nn

torch.manual_seed(0)
ITEMS = 30
visits = torch.randint(0, ITEMS, (400, 4))
following = (visits[:, -1] + 1) % ITEMS


class Following(nn.Module):
    def __init__(self):
        super().__init__()
        self.items = nn.Embedding(ITEMS, 12)
        self.score = nn.Linear(12, ITEMS)

    def forward(self, visits):
        return self.score(self.items(visits[:, -1]))


def share_of_hits(model, visits, following):
    with torch.no_grad():
        first = model(visits).topk(5, dim=1).indices
    return (first == following[:, None]).any(1).float().mean().item()


model = Following()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
lower = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "min", patience=1)
for epoch in range(6):
    for part in torch.randperm(320).split(32):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(visits[part]), following[part])
        loss.backward()
        optimizer.step()
    hits = share_of_hits(model, visits[320:], following[320:])
    lower.step(hits)  # <- TL604
    print(epoch, loss.item(), hits)
