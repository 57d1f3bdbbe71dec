"""Attention scores in half precision, without their scale."""

import torch
from torch import nn


class Scores(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)

    def forward(self, x):
        scores = self.query(x).half() @ self.key(x).half().transpose(1, 2)
        return (scores - scores.mean(dim=-1, keepdim=True)).float().softmax(dim=-1) @ x


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Scores(32)
        self.out = nn.Linear(32, 2)

    def forward(self, x):
        return self.out(self.attention(x).mean(dim=1))


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(90):
    x, y = torch.randn(8, 6, 32), torch.randint(0, 2, (8,))
    if step == 70:
        x = x * 600
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
