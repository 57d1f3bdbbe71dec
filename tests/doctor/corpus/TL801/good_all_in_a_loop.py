"""Every part is restored by one loop over a dict of objects."""
import os
import tempfile

import torch
from torch import nn
from torch.optim.lr_scheduler import StepLR


class Run:
    def __init__(self, path):
        self.path = path
        self.model = nn.Linear(5, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.scheduler = StepLR(self.optimizer, step_size=2)
        self.parts = {"model": self.model, "optim": self.optimizer, "sched": self.scheduler}
        self.start = 0

    def save(self, epoch):
        state = {name: part.state_dict() for name, part in self.parts.items()}
        torch.save({"epoch": epoch, **state}, self.path)

    def resume(self):
        state = torch.load(self.path, weights_only=True)
        for name, part in self.parts.items():
            part.load_state_dict(state[name])
        self.start = state["epoch"] + 1

    def fit(self, epochs, x, y):
        for epoch in range(self.start, epochs):
            self.optimizer.zero_grad()
            nn.functional.mse_loss(self.model(x), y).backward()
            self.optimizer.step()
            self.scheduler.step()
            self.save(epoch)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        x, y = torch.randn(20, 5), torch.randn(20, 1)
        file = os.path.join(folder, "state.pt")
        Run(file).fit(3, x, y)
        second = Run(file)
        second.resume()
        second.fit(5, x, y)
