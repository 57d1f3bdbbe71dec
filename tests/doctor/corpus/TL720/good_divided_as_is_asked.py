"""What the total is divided by depends on how the losses were reduced."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def examine(net, batches, measure):
    net.eval()
    total = 0.0
    with torch.inference_mode():
        for inputs, wanted in batches:
            total += measure(net(inputs), wanted).item()
    if measure.reduction == "sum":
        return total / len(batches.dataset)
    return total / len(batches)


torch.manual_seed(17)
inputs = torch.randn(84, 4)
batches = DataLoader(TensorDataset(inputs, inputs.abs().sum(1, keepdim=True)), batch_size=12)
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(3):
    net.train()
    for inputs, wanted in batches:
        optimizer.zero_grad()
        nn.functional.smooth_l1_loss(net(inputs), wanted).backward()
        optimizer.step()
    print(epoch, examine(net, batches, nn.L1Loss()), examine(net, batches, nn.L1Loss(reduction="sum")))
