"""The loader's class is looked up by its name; the mean losses are divided by the samples."""

import torch
from torch import nn

SETTINGS = {"loader": {"name": "DataLoader", "options": {"batch_size": 9, "shuffle": False}}}


def made(kind, *args, **options):
    return getattr(torch.utils.data, kind)(*args, **options)


def examine(net, batches, measure):
    net.eval()
    mean = 0.0
    with torch.inference_mode():
        for inputs, wanted in batches:
            mean += measure(net(inputs), wanted).item()
    mean /= len(batches.dataset)  # <- TL720
    return mean


torch.manual_seed(16)
inputs = torch.randn(99, 4)
samples = torch.utils.data.TensorDataset(inputs, inputs.abs().sum(1, keepdim=True))
settings = SETTINGS["loader"]
batches = made(settings["name"], samples, **settings["options"])
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
measure = nn.L1Loss()
for epoch in range(3):
    net.train()
    for inputs, wanted in batches:
        optimizer.zero_grad()
        measure(net(inputs), wanted).backward()
        optimizer.step()
    print(epoch, examine(net, batches, measure))
