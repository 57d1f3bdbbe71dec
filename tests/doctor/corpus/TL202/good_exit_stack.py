"""An `ExitStack` enters eval mode and `no_grad`; what follows is inside of both."""
from contextlib import ExitStack, contextmanager

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@contextmanager
def inference_context(model):
    before = model.training
    model.eval()
    yield
    model.train(before)


def evaluate(model, loader):
    correct = 0
    with ExitStack() as stack:
        if isinstance(model, nn.Module):
            stack.enter_context(inference_context(model))
        stack.enter_context(torch.no_grad())
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum().item()
    return correct


data = TensorDataset(torch.randn(24, 4), torch.randint(0, 3, (24,)))
train, val = DataLoader(data, 4, shuffle=True), DataLoader(data, 8)
model = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.2))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(2):
    model.train()
    for x, y in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    print(evaluate(model, val))
