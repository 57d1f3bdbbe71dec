"""Each label list is extended by hand up to the longest; the parts of a large batch count the same."""

import random

import torch
from torch import nn

random.seed(0)
torch.manual_seed(0)
signals = [[random.random() for _ in range(random.choice((4, 6, 30)))] for _ in range(64)]


def numbered(part):
    width = max(map(len, part))
    values, labels = [], []
    for signal in part:
        missing = width - len(signal)
        label = [int(value > 0.5) for value in signal]
        label.extend([-100] * (width - len(label)))
        labels.append(label)
        values.append(signal + [0.0] * missing)
    return torch.tensor(values), torch.tensor(labels)


network = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(network.parameters(), lr=0.5)
for update in range(10):
    large = random.sample(signals, 24)
    parts = [large[start : start + 8] for start in range(0, 24, 8)]
    optimizer.zero_grad()
    for part in parts:
        values, labels = numbered(part)
        scores = network(values.unsqueeze(-1))
        loss = nn.functional.cross_entropy(scores.transpose(1, 2), labels)  # <- TL510
        (loss / len(parts)).backward()
    optimizer.step()
    print(update, loss.item())
