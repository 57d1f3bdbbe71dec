import json

import torch
from torch import nn

SETTINGS = json.loads('{"layers": {"stem": 12, "middle": 12}, "keep": ["stem"], "train": "stem"}')


class Tagger(nn.Module):
    def __init__(self, sizes, inputs=7, tags=3):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(inputs, sizes["stem"]), nn.ReLU())
        self.middle = nn.Sequential(nn.Linear(sizes["stem"], sizes["middle"]), nn.ReLU())
        self.tags = nn.Linear(sizes["middle"], tags)

    def forward(self, x):
        return self.tags(self.middle(self.stem(x)))


def optimizers_of(model, settings):
    part = getattr(model, settings["train"])
    rest = [*model.middle.parameters(), *model.tags.parameters()]
    return (
        torch.optim.SGD(part.parameters(), lr=0.01),  # <- TL309
        torch.optim.SGD(rest, lr=0.1),
    )


torch.manual_seed(3)
model = Tagger(SETTINGS["layers"])
for name in SETTINGS["keep"]:
    for parameter in getattr(model, name).parameters():
        parameter.requires_grad = False
slow, fast = optimizers_of(model, SETTINGS)
x = torch.randn(120, 7)
y = x[:, :3].argmax(1)
for epoch in range(4):
    for rows in torch.randperm(120).split(20):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        slow.zero_grad()
        fast.zero_grad()
        loss.backward()
        slow.step()
        fast.step()
    print(epoch, loss.item())
