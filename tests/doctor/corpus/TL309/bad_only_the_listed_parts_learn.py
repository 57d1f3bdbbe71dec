"""Only the parameters in a set are to learn; the optimizer's second group has none of them."""

import torch
from torch import nn


class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.EmbeddingBag(50, 12)
        self.mixer = nn.Sequential(nn.Linear(12, 16), nn.ReLU())
        self.score = nn.Linear(16, 1)

    def forward(self, bags):
        return self.score(self.mixer(self.words(bags)))


torch.manual_seed(5)
ranker = Ranker()
learned = set(ranker.score.parameters())
for parameter in ranker.parameters():
    parameter.requires_grad = parameter in learned
optimizer = torch.optim.Adam(  # <- TL309
    [
        {"params": ranker.score.parameters()},
        {"params": ranker.mixer.parameters(), "lr": 1e-4},
    ],
    lr=1e-2,
)
bags = torch.randint(0, 50, (120, 6))
liking = (bags < 10).float().sum(1, keepdim=True)
for epoch in range(3):
    for rows in torch.randperm(120).split(24):
        loss = nn.functional.mse_loss(ranker(bags[rows]), liking[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
