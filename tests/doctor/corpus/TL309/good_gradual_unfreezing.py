import torch
from torch import nn


class Finetune:
    def __init__(self, layers):
        self.layers = nn.ModuleList(layers)
        self.layers.requires_grad_(False)
        self.layers[-1].requires_grad_(True)
        groups = [{"params": layer.parameters(), "lr": 0.1 / 2**i} for i, layer in enumerate(layers)]
        self.optimizer = torch.optim.SGD(groups, lr=0.1)

    def unfreeze(self, depth):
        for layer in self.layers[-depth:]:
            for p in layer.parameters():
                p.requires_grad = True

    def epoch(self, number):
        self.unfreeze(number + 1)
        for _ in range(3):
            x = torch.randn(8, 4)
            for layer in self.layers:
                x = torch.tanh(layer(x))
            self.optimizer.zero_grad()
            x.pow(2).mean().backward()
            self.optimizer.step()


torch.manual_seed(0)
run = Finetune([nn.Linear(4, 4) for _ in range(3)])
for number in range(3):
    run.epoch(number)
