import torch
import torch.nn as nn


class NoamOpt:
    """Optim wrapper that implements rate, and leaves clean gradients behind."""

    def __init__(self, model_size, factor, warmup, optimizer):
        self.optimizer = optimizer
        self._step = 0
        self.warmup, self.factor, self.model_size = warmup, factor, model_size

    def step(self):
        self._step += 1
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def rate(self):
        step = self._step
        return self.factor * self.model_size ** -0.5 * min(step ** -0.5, step * self.warmup ** -1.5)


def run_epoch(data, model, criterion, optimizer):
    for src, tgt in data:
        loss = criterion(model(src), tgt)
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))
    opt = NoamOpt(16, 1, 400, torch.optim.Adam(model.parameters(), lr=0, betas=(0.9, 0.98)))
    data = [(torch.randn(4, 8), torch.randn(4, 8)) for _ in range(10)]
    for epoch in range(2):
        print(run_epoch(data, model, nn.MSELoss(), opt))
