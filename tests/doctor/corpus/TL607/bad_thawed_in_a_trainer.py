"""The whole model is given to a new optimizer; the attribute of the schedule is not touched."""

import torch
from torch import nn


class Tuner:
    def __init__(self):
        self.body, self.head = nn.Linear(6, 12), nn.Linear(12, 1)
        self.model = nn.Sequential(self.body, nn.ReLU(), self.head)
        self.body.requires_grad_(False)
        self.optimizer = torch.optim.AdamW(self.head.parameters(), lr=1e-2)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, step_size=3)

    def thaw(self):
        self.body.requires_grad_(True)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)  # <- TL607

    def fit(self, epochs):
        for epoch in range(epochs):
            if epoch == epochs // 2:
                self.thaw()
            for _ in range(4):
                x = torch.randn(16, 6)
                loss = nn.functional.mse_loss(self.model(x), x[:, :1].sin())
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            self.schedule.step()


torch.manual_seed(0)
Tuner().fit(8)
