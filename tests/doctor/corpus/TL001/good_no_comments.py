"""Speaks of "trueloop: ignore[TL101]" in a text, which is no comment."""

import torch
from torch import nn

HELP = "silence a line with # trueloop: ignore[TL101]"


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = nn.functional.mse_loss(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.item()


trainer = Trainer(nn.Linear(2, 1))
print(HELP, [trainer.step(torch.randn(8, 2), torch.randn(8, 1)) for _ in range(3)])
