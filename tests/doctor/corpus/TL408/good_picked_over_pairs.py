"""Contrastive: both directions of a square matrix, and attention over the positions of a bag."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.randn(64, 6)
loader = DataLoader(TensorDataset(x, x[:, :2].argmax(1)), batch_size=16, shuffle=True)
left, right, score = nn.Linear(6, 4), nn.Linear(6, 4), nn.Linear(6, 1)
optimizer = torch.optim.Adam([*left.parameters(), *right.parameters(), *score.parameters()])
for inputs, targets in loader:
    similar = left(inputs) @ right(inputs).T
    pairs = torch.arange(len(inputs))
    loss = -similar.log_softmax(dim=0)[pairs, pairs].mean()
    loss = loss - similar.log_softmax(dim=1).gather(1, pairs[:, None]).mean()
    weight = torch.softmax(score(inputs), dim=0)
    pooled = (weight * inputs).sum(0)
    loss = loss + (pooled - inputs[targets == 0].mean(0)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
