import math

import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(512, 64), torch.randint(0, 10, (512,))
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
print("log(10)             ", math.log(10))
print("inputs of order one ", nn.functional.cross_entropy(model(x), y).item())
print("inputs 100 times    ", nn.functional.cross_entropy(model(100 * x), y).item())
print("all one class       ", nn.functional.cross_entropy(model(x), y * 0).item())
nn.init.kaiming_normal_(model[2].weight)
print("He's in the last    ", nn.functional.cross_entropy(model(x), y).item())
