import os

import torch
from torch import nn


class Trainer:
    def __init__(self, model, half):
        self.model, self.half = model, half
        self.opt = torch.optim.SGD(model.parameters(), lr=0.05)
        self.scaler = torch.amp.GradScaler("cpu") if half else None

    def update(self, x, y):
        loss = nn.functional.mse_loss(self.model(x), y)
        self.opt.zero_grad(set_to_none=True)
        self.apply(loss)
        return loss.item()

    def apply(self, loss):
        if self.scaler:
            self.scaler.scale(loss).backward()
            self.scaler.step(self.opt)
            self.scaler.update()
            return
        loss.backward()  # <- TL106


torch.manual_seed(0)
trainer = Trainer(nn.Linear(3, 1), half="HALF" in os.environ)
batches = torch.randn(5, 8, 3)
for epoch in range(2):
    for x in batches:
        value = trainer.update(x, x.sum(1, keepdim=True))
    print(value)
