"""What a frozen encoder gives is computed once for each batch, and read in the epochs after."""

import torch
from torch import nn


class Cached(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder.requires_grad_(False)
        self.known = {}

    def forward(self, key, x):
        if key not in self.known:
            with torch.no_grad():
                self.known[key] = self.encoder(x)
        return self.known[key]


torch.manual_seed(0)
features = Cached(nn.Linear(16, 256))
head = nn.Linear(256, 3)
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
x = torch.randn(250, 512, 16)
y = x[..., :3].argmax(dim=-1)
for epoch in range(2):
    for batch in torch.randperm(len(x)).tolist():
        loss = nn.functional.cross_entropy(head(features(batch, x[batch])), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
