"""A meter that would weight by samples, and a validation that forgets to say how many there are."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Mean:
    def __init__(self):
        self.reset()

    def reset(self):
        self.weighted = 0.0
        self.weight = 0

    def add(self, value, weight=1):
        self.weighted += weight * value
        self.weight += weight

    def compute(self):
        return self.weighted / max(self.weight, 1)


def waves(count):
    time = torch.rand(count, 24)
    return TensorDataset(time, time.sin().mean(1, keepdim=True))


class Trainer:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(24, 12), nn.SiLU(), nn.Linear(12, 1))
        self.optimizer = torch.optim.NAdam(self.net.parameters(), lr=0.01)
        self.distance = nn.SmoothL1Loss()
        self.train_batches = DataLoader(waves(320), batch_size=32, shuffle=True)
        self.held_batches = DataLoader(waves(75), batch_size=32)

    def train(self):
        mean = Mean()
        for wave, level in self.train_batches:
            self.optimizer.zero_grad()
            loss = self.distance(self.net(wave), level)
            loss.backward()
            self.optimizer.step()
            mean.add(loss.item(), wave.size(0))
        return mean.compute()

    @torch.inference_mode()
    def hold_out(self):
        mean = Mean()
        for wave, level in self.held_batches:
            mean.add(self.distance(self.net(wave), level).item())  # <- TL709
        return mean.compute()


torch.manual_seed(0)
trainer = Trainer()
for epoch in range(3):
    print(epoch, trainer.train(), trainer.hold_out())
