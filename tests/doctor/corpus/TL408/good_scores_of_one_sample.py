"""One sample at a time: its scores are a vector, whose only dimension holds the classes. And a bag:
attention over its instances, from which rows are picked for a plot."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
samples = [torch.randn(6) for _ in range(40)]
labels = torch.randint(3, (40,))
model, attention = nn.Linear(6, 3), nn.Linear(6, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(2):
    for i in torch.randperm(40).tolist():
        scores = F.log_softmax(model(samples[i]), dim=0)
        loss = F.nll_loss(scores, labels[i])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
optimizer = torch.optim.SGD([*model.parameters(), *attention.parameters()], lr=0.05)
for first in range(0, 40, 8):
    bag = torch.stack(samples[first : first + 8])
    weights = F.softmax(attention(bag), dim=0)
    pooled = (weights * bag).sum(0, keepdim=True)
    loss = F.cross_entropy(model(pooled), labels[first : first + 1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    largest = weights.squeeze(1).topk(3).indices
    print(weights[largest].sum().item(), labels[first + largest].tolist())
