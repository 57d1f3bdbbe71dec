"""The class holds its frozen encoder in eval mode, whoever calls `train()`."""

import torch
from torch import nn


class Finetuner(nn.Module):
    def __init__(self, path):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(6, 10), nn.BatchNorm1d(10), nn.ReLU())
        self.encoder.load_state_dict(torch.load(path, weights_only=True))
        for p in self.encoder.parameters():
            p.requires_grad = False
        self.head = nn.Linear(10, 2)

    def train(self, mode=True):
        super().train(mode)
        self.encoder.eval()
        return self

    def forward(self, x):
        return self.head(self.encoder(x))


torch.manual_seed(0)
before = nn.Sequential(nn.Linear(6, 10), nn.BatchNorm1d(10), nn.ReLU())
before(torch.randn(32, 6) + 2)
torch.save(before.state_dict(), "encoder.pt")
model = Finetuner("encoder.pt")
optimizer = torch.optim.Adam(model.head.parameters(), lr=1e-2)
x, y = torch.randn(60, 6), torch.randint(0, 2, (60,))
for epoch in range(3):
    model.train()
    for rows in torch.randperm(60).split(12):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
