"""What each training step returns is kept for the end, as a dictionary with the loss in it."""

import torch
from torch import nn


class Regression(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))

    def training_step(self, batch):
        x, y = batch
        residual = self.layers(x) - y
        return {"loss": residual.square().mean(), "size": len(x)}


class Loop:
    def __init__(self, module, rate):
        self.module = module
        self.optimizer = torch.optim.SGD(module.parameters(), lr=rate)
        self.outputs = []

    def fit(self, epochs, batches):
        for _ in range(epochs):
            for batch in batches:
                output = self.module.training_step(batch)
                self.optimizer.zero_grad()
                output["loss"].backward()
                self.optimizer.step()
                self.outputs.append(output)  # <- TL204


torch.manual_seed(3)
batches = [(x, x[:, :1] - x[:, 1:2]) for x in torch.randn(20, 8, 5)]
loop = Loop(Regression(), 0.05)
loop.fit(4, batches)
print(sum(each["size"] for each in loop.outputs))
