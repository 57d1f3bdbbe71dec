"""The body is thawed for the last epoch, in a function whose objects go with it."""
import torch
from torch import nn


def tune(inputs, targets, epochs):
    body, head = nn.Linear(4, 8), nn.Linear(8, 1)
    net = nn.Sequential(body, nn.ReLU(), head)
    body.requires_grad_(False)
    groups = [{"params": body.parameters(), "lr": 1e-4}, {"params": head.parameters()}]
    optimizer = torch.optim.Adam(groups, lr=1e-3)
    for epoch in range(epochs):
        if epoch == epochs - 1:
            body.requires_grad_(True)
        for x, y in zip(inputs.split(8), targets.split(8)):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(net(x), y)
            loss.backward()
            optimizer.step()
    return loss.item()


torch.manual_seed(0)
inputs = torch.randn(128, 4)
print(tune(inputs, inputs.sum(1, keepdim=True), 12))
