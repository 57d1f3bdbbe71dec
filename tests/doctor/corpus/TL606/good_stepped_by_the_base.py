"""A method of the base class goes through the schedules that the class has put into a list."""

import torch
from torch import nn
from torch.optim import lr_scheduler


class Base(nn.Module):
    def learn(self, epoch, batches):
        self.train()
        for x, y in batches:
            self.x, self.y = x, y
            self.optimize_parameters()
        for schedule in self.schedules:
            schedule.step()
        print(epoch, self.loss.item())


class Pair(Base):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 16), nn.Linear(16, 1)
        self.optimizer_body = torch.optim.Adam(self.body.parameters(), lr=1e-2)
        self.optimizer_head = torch.optim.Adam(self.head.parameters(), lr=1e-2)
        self.schedule_body = lr_scheduler.ExponentialLR(self.optimizer_body, gamma=0.9)
        self.schedule_head = lr_scheduler.ExponentialLR(self.optimizer_head, gamma=0.9)
        self.schedules = [self.schedule_body, self.schedule_head]

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))

    def optimize_parameters(self):
        for _ in range(2):
            self.loss = nn.functional.mse_loss(self(self.x), self.y)
            self.optimizer_body.zero_grad()
            self.optimizer_head.zero_grad()
            self.loss.backward()
            self.optimizer_body.step()
            self.optimizer_head.step()


def batches():
    for _ in range(12):
        x = torch.randn(16, 4)
        yield x, x[:, :1] * x[:, 1:2]


def main(cls, epochs=5):
    torch.manual_seed(0)
    model = cls()
    for epoch in range(epochs):
        model.learn(epoch, batches())


main(globals()["Pair"])
