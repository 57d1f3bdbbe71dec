"""A small set; the count of a bar of one's own is that of the batches, also as a weight."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Bar:
    def __init__(self, source):
        self.source = source

    def __iter__(self):
        self.running = iter(self.source)
        return self

    def __next__(self):
        return next(self.running)


def averaged(numbers, weight):
    return [number * weight / weight for number in numbers]


def validate(model, loader):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for index, (x, y) in enumerate(Bar(loader)):
            total += nn.functional.l1_loss(model(x), y).item()
    return averaged([total / (index + 1)], index + 1)[0]


model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.Linear(8, 1))
loader = DataLoader(TensorDataset(torch.randn(3, 4), torch.randn(3, 1)), batch_size=2, drop_last=True)
print(validate(model, loader))
