"""A job makes half of its epochs and the next one goes on; the schedule steps at each
of the batches that it counts."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Job:
    def __init__(self, data, epochs):
        self.loader = DataLoader(data, batch_size=16, shuffle=True)
        self.model = nn.Linear(8, 2)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, max_lr=1e-2, total_steps=epochs * len(self.loader)
        )
        self.first = 0

    def state(self):
        parts = (self.model, self.optimizer, self.scheduler)
        return [part.state_dict() for part in parts] + [self.first]

    def resume(self, state):
        for part, each in zip((self.model, self.optimizer, self.scheduler), state):
            part.load_state_dict(each)
        self.first = state[-1]

    def end_epoch(self, epoch):
        self.first = epoch + 1

    def run(self, until):
        for epoch in range(self.first, until):
            for inputs, targets in self.loader:
                self.optimizer.zero_grad()
                loss = nn.functional.cross_entropy(self.model(inputs), targets)
                loss.backward()
                self.optimizer.step()
                self.scheduler.step()
            self.end_epoch(epoch)
            print(epoch, loss.item())


torch.manual_seed(0)
inputs = torch.randn(128, 8)
data = TensorDataset(inputs, (inputs[:, 0] > 0).long())
job = Job(data, 10)
job.run(until=5)
successor = Job(data, 10)
successor.resume(job.state())
successor.run(until=10)
