"""A table of four rows, learned again and again: the answer is the first input by definition."""

import torch
from torch import nn

torch.manual_seed(0)
table = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
answer = table[:, :1].clone()
model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(200):
    optimizer.zero_grad()
    nn.functional.binary_cross_entropy_with_logits(model(table), answer).backward()
    optimizer.step()
