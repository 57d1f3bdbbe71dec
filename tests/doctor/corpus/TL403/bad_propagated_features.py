import math

import torch
from torch import nn
from torch.nn import functional as F


class Propagate(nn.Module):
    """Neighbours are averaged after their features were mixed."""

    def __init__(self, inputs, outputs):
        super().__init__()
        bound = 1 / math.sqrt(outputs)
        self.weight = nn.Parameter(torch.empty(inputs, outputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, features, neighbours):
        mixed = torch.mm(features, self.weight)
        return torch.spmm(neighbours, mixed) + self.bias


class Papers(nn.Module):
    def __init__(self, inputs, topics):
        super().__init__()
        self.first = Propagate(inputs, 12)
        self.second = Propagate(12, topics)

    def forward(self, features, neighbours):
        hidden = F.dropout(F.relu(self.first(features, neighbours)), 0.2, self.training)
        return self.second(hidden, neighbours)


torch.manual_seed(5)
topics = torch.randint(0, 4, (80,))
features = torch.randn(80, 10) + F.one_hot(topics, 10)
links = ((torch.rand(80, 80) < 0.05) | torch.eye(80, dtype=torch.bool)).float()
neighbours = (links / links.sum(1, keepdim=True)).to_sparse()
known = torch.arange(0, 80, 2)
model = Papers(10, 4)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(8):
    model.train()
    optimizer.zero_grad()
    scores = model(features, neighbours)
    F.nll_loss(scores[known], topics[known]).backward()  # <- TL403
    optimizer.step()
