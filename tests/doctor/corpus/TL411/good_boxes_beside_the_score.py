"""One layer gives a score and a box; the loss of the score takes logits, and boxes are compared."""

import torch
from torch import nn


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 16), nn.ReLU())
        self.score, self.box = nn.Linear(16, 1), nn.Linear(16, 2)

    def forward(self, x):
        x = self.body(x)
        return self.score(x).squeeze(1), self.box(x)


torch.manual_seed(0)
model = Detector()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(200):
    x = torch.randn(32, 6)
    there, wanted = (x.sum(1) > 0).float(), x[:, :2].sigmoid()
    score, box = model(x)
    loss = nn.functional.binary_cross_entropy_with_logits(score, there)
    loss = loss + (box - wanted).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        found = (score > 0) == there.bool()
        halves = (box > 0.5) == (wanted > 0.5)
        print(step, loss.item(), found.float().mean().item(), halves.float().mean().item())
