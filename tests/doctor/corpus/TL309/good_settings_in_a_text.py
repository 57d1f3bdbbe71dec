"""The text names what is frozen, and the groups are of the rest; what it names for later is thawed
after the first epochs."""

import tomllib

import torch
from torch import nn

SETTINGS = tomllib.loads("""
frozen = ["stem", "middle"]
later = ["middle"]
[rates]
middle = 0.01
tags = 0.1
""")


class Tagger(nn.Module):
    def __init__(self, inputs=7, size=12, tags=3):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(inputs, size), nn.ReLU())
        self.middle = nn.Sequential(nn.Linear(size, size), nn.ReLU())
        self.tags = nn.Linear(size, tags)

    def forward(self, x):
        return self.tags(self.middle(self.stem(x)))


def switch(model, names, on):
    for name in names:
        for parameter in getattr(model, name).parameters():
            parameter.requires_grad = on


torch.manual_seed(3)
model = Tagger()
switch(model, SETTINGS["frozen"], False)
optimizer = torch.optim.SGD(
    [
        {"params": getattr(model, name).parameters(), "lr": rate}
        for name, rate in SETTINGS["rates"].items()
    ],
    lr=0.1,
)
x = torch.randn(120, 7)
y = x[:, :3].argmax(1)
for epoch in range(4):
    if epoch == 2:
        switch(model, SETTINGS["later"], True)
    for rows in torch.randperm(120).split(20):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
