"""The parameters are collected one by one: which model they belong to is not to be seen at once."""
import torch
from torch import nn


def parameters_of(model):
    groups, seen = [], set()
    for module in model.modules():
        for name, value in module.named_parameters(recurse=False):
            if not value.requires_grad or value in seen:
                continue
            seen.add(value)
            groups.append({"params": [value], "weight_decay": 0.0 if name == "bias" else 0.01})
    return groups


def build_optimizer(model, rate):
    return torch.optim.SGD(parameters_of(model), lr=rate, momentum=0.9)


def train(steps):
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = build_optimizer(model, 0.1)
    for step in range(steps):
        x = torch.randn(8, 4)
        losses = {"loss": nn.functional.cross_entropy(model(x), x[:, :2].argmax(1))}
        total = sum(losses.values())
        optimizer.zero_grad()
        optimizer.step()  # <- TL108
        print(step, total.item())


torch.manual_seed(0)
train(6)
