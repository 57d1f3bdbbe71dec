# The norms are to stay as they are after the first epoch, unless `--thaw`, the default, says else.
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--thaw", type=int, default=1)
options = parser.parse_args()

torch.manual_seed(2)
rows = torch.randn(120, 5)
kinds = (rows[:, 0] > rows[:, 1]).long()
train_set = DataLoader(TensorDataset(rows[:96], kinds[:96]), batch_size=12, shuffle=True)
other_set = DataLoader(TensorDataset(rows[96:], kinds[96:]), batch_size=12)
classifier = nn.Sequential(nn.Linear(5, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
sgd = torch.optim.SGD(classifier.parameters(), lr=0.1)


def accuracy():
    classifier.eval()
    with torch.no_grad():
        return sum((classifier(x).argmax(1) == k).sum().item() for x, k in other_set) / 24


for epoch in range(3):
    if options.thaw:
        classifier.train()
    for x, k in train_set:
        loss = nn.functional.cross_entropy(classifier(x), k)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
    print(epoch, accuracy())
