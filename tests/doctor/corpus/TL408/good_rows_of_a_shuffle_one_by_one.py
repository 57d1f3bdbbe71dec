"""The order is cut into pieces, and each piece is gone through sample by sample: the scores have one
dimension, the classes."""

import torch
import torch.nn as nn


class Reader(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(sizes[0], sizes[1]), nn.Tanh())
        self.topics = nn.Linear(sizes[1], sizes[2])

    def forward(self, x):
        return torch.log_softmax(self.topics(self.body(x)), dim=0)


def samples(per_topic, topics=4):
    found = [torch.randn(per_topic, 9) + topic for topic in range(topics)]
    return torch.cat(found), torch.cat([torch.full((per_topic,), t) for t in range(topics)])


torch.manual_seed(8)
x, y = samples(12)
model = Reader((9, 10, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
criterion = nn.NLLLoss()
for epoch in range(2):
    for part in torch.randperm(len(x)).split(8):
        optimizer.zero_grad()
        for one in part:
            loss = criterion(model(x[one]), y[one]) / len(part)
            loss.backward()
        optimizer.step()
    print(epoch, loss.item())
