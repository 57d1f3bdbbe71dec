"""A recipe with a pipeline in a branch, which gets the model; the other branch never clears."""
import argparse
import os

import torch
from torch import nn

class Recipe:
    def __init__(self, config, model, optimizer):
        self.config, self.model, self.optimizer = config, model, optimizer

    def forward_backward(self, x, y):
        if self.config.pipelined:
            return self.config.train_schedule(self.model, x, y)
        loss = nn.functional.mse_loss(self.model(x), y)
        loss.backward()
        return loss

    def train(self, batches):
        self.optimizer.zero_grad()
        for x, y in batches:
            loss = self.forward_backward(x, y)
            self.optimizer.step()  # <- TL102
        return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    net = nn.Linear(4, 1)
    config = argparse.Namespace(pipelined=False)
    recipe = Recipe(config, net, torch.optim.SGD(net.parameters(), lr=0.1))
    rows = [(torch.randn(8, 4), torch.randn(8, 1)) for _ in range(6)]
    for name in os.environ.get("STAGES", "train").split():
        print(getattr(recipe, name)(rows))
