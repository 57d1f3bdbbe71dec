"""Before training, a backward of a copy inside autocast measures what a batch costs."""
import time
from copy import deepcopy

import torch
from torch import nn


def profile(sizes, module, repeats=2):
    results = []
    for size in sizes:
        x = torch.randn(size, 4)
        x.requires_grad = True
        for _ in range(repeats):
            begun = time.perf_counter()
            y = module(x)
            try:
                _ = (sum(each.sum() for each in y) if isinstance(y, list) else y).sum().backward()
            except RuntimeError:
                continue
            results.append((time.perf_counter() - begun, size))
    return results


def affordable(model, amp=True):
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=amp):
        return min(profile([4, 8, 16], deepcopy(model).train()))[1]


def make_optimizer(model, name):
    groups = [], []
    for module in model.modules():
        if getattr(module, "weight", None) is not None:
            groups[0].append(module.weight)
        if getattr(module, "bias", None) is not None:
            groups[1].append(module.bias)
    optimizer = getattr(torch.optim, name)(groups[1], lr=0.1)
    optimizer.add_param_group({"params": groups[0], "weight_decay": 1e-4})
    return optimizer


def train(epochs=2):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    batch = affordable(model)
    optimizer = make_optimizer(model, "SGD")
    data, labels = torch.randn(64, 4), torch.randint(0, 2, (64,))
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(data, labels), batch_size=batch, shuffle=True
    )
    for _ in range(epochs):
        for x, y in loader:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    train()
