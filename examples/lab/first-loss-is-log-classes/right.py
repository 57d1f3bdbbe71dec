"""A ten-class classifier whose inputs are normalised, right: the first loss is close to log(10).

Beside the network that is trained, four others only say what their first loss is: one on a set
where nine samples in ten are of one class, one with He's initialisation in all layers, one whose
last layer is drawn with a standard deviation of 1, and one whose last bias holds the logarithms of
the class shares.
"""

import json
import math
import sys

import torch
from torch import nn

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
classes = 10
pixels = torch.randint(0, 256, (1024, 64)).float()
normalised = (pixels - pixels.mean()) / pixels.std()
y = (normalised @ torch.randn(64, classes)).argmax(1)
skewed = torch.where(torch.rand(1024) < 0.9, 0, y)
x = normalised


def fresh():
    return nn.Sequential(
        nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, classes)
    )


@torch.no_grad()
def first_loss(model, targets):
    return nn.functional.cross_entropy(model(x), targets).item()


model = fresh()
he = fresh()
for layer in he[::2]:
    nn.init.kaiming_normal_(layer.weight)
    nn.init.zeros_(layer.bias)
large = fresh()
nn.init.normal_(large[-1].weight)
informed = fresh()
with torch.no_grad():
    informed[-1].bias.copy_((torch.bincount(skewed, minlength=classes) / len(x)).log())
figures = {
    "log_classes": math.log(classes),
    "skewed": first_loss(fresh(), skewed),
    "informed": first_loss(informed, skewed),
    "he": first_loss(he, y),
    "large": first_loss(large, y),
}

optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
losses = []
for update in range(100):
    batch = torch.arange(update * 128, (update + 1) * 128) % len(x)
    loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(json.dumps({"first": losses[0], **figures, "last": losses[-1], "loss": losses}))
