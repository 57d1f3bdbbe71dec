import torch
from torch import nn

import trueloop

saved = nn.Module()
saved.add_module("0", nn.Linear(8, 16))
saved.add_module("2", nn.Linear(16, 3, bias=False))
saved.add_module("3", nn.Module())
saved.get_submodule("3").bias = nn.Parameter(torch.zeros(3))
trueloop.save_weights(saved, "model.safetensors")
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 5))
report = trueloop.load_weights(model, "model.safetensors", strict=False)
print(report)
