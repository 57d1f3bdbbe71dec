"""The second network's outputs go through one of the kinds of reduction; there is no other."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--form", default="rows")
parser.add_argument("--reduce", default="mean")
args = parser.parse_args([])


def reduced(rows, kind):
    if kind == "sum":
        return rows.sum(1)
    elif kind == "mean":
        return rows.mean(1)
    elif kind == "max":
        return rows.amax(1)


def shifted(count, by):
    return (torch.arange(count) + by) % count


torch.manual_seed(0)
query, key = nn.Linear(4, 6), nn.Linear(5, 6)
first = torch.optim.SGD(query.parameters(), lr=0.1)
second = torch.optim.SGD(key.parameters(), lr=0.1)
criterion = nn.BCEWithLogitsLoss()
for a, b, chosen in zip(torch.randn(5, 8, 4), torch.randn(5, 8, 3, 5), torch.arange(8).expand(5, 8)):
    asked = query(a)[chosen]
    found = key(b)[chosen]
    if args.form == "rows":
        about = reduced(found, args.reduce)
        other = torch.cat([about[shifted(len(about), by + 1)] for by in range(1)], dim=0)
        pred, wrong = (asked * about).sum(1), (asked * other).sum(1)
    elif args.form == "first":
        pred, wrong = (asked * found[:, 0]).sum(1), (asked * found[:, 1]).sum(1)
    else:
        raise ValueError(args.form)
    loss = criterion(pred.double(), torch.ones(len(pred)).double())
    loss = loss + criterion(wrong.double(), torch.zeros(len(wrong)).double())
    first.zero_grad()
    second.zero_grad()
    loss.backward()
    first.step()
    second.step()
    print(loss.item())
