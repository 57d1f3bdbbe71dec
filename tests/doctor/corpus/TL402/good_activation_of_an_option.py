"""The loss follows the activation, which is an option."""

import argparse

import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, inputs, tags, final):
        super().__init__()
        self.head = nn.Linear(inputs, tags)
        self.final = getattr(torch, final) if final != "none" else nn.Identity()

    def forward(self, x):
        return self.final(self.head(x))


parser = argparse.ArgumentParser()
parser.add_argument("--final", default="sigmoid")
parser.add_argument("--table", default="logits")
args = parser.parse_args([])
torch.manual_seed(0)
model = Tagger(10, 4, args.final)
if args.final == "sigmoid":
    criterion = nn.BCELoss()
else:
    criterion = nn.BCEWithLogitsLoss()
second = nn.Sequential(nn.Linear(10, 4), {"logits": nn.Identity, "p": nn.Sigmoid}[args.table]())
parts = [*model.parameters(), *second.parameters()]
optimizer = torch.optim.SGD(parts, lr=0.1)
x = torch.randn(64, 10)
tags = (x[:, :4] > 0).float()
for epoch in range(2):
    for rows in torch.arange(64).view(4, 16):
        optimizer.zero_grad()
        loss = criterion(model(x[rows]), tags[rows])
        loss = loss + nn.functional.binary_cross_entropy_with_logits(second(x[rows]), tags[rows])
        loss.backward()
        optimizer.step()
