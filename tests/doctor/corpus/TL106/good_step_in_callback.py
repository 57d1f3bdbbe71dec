import torch
from torch import nn


class Optimize:
    """Takes the step after backward; the loop itself only computes gradients."""

    def __init__(self, optimizer, every=1):
        self.optimizer, self.every, self.calls = optimizer, every, 0

    def __call__(self, loss):
        self.calls += 1
        if self.calls % self.every == 0:
            self.optimizer.step()
            self.optimizer.zero_grad()


def loop(model, batches, loss_fn, hooks):
    for x, y in batches:
        loss = loss_fn(model(x), y)
        loss.backward()
        for hook in hooks:
            hook(loss.item())


torch.manual_seed(0)
model = nn.Linear(4, 2)
hooks = [Optimize(torch.optim.SGD(model.parameters(), lr=0.1)), print]
batches = [(torch.randn(8, 4), torch.randint(0, 2, (8,))) for _ in range(6)]
loop(model, batches, nn.CrossEntropyLoss(), hooks)
