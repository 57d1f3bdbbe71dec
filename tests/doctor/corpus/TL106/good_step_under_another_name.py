import torch
from torch import nn


class ScheduledOptim:
    """A learning rate that is set before each update, as in "Attention is all you need"."""

    def __init__(self, optimizer, lr_mul, d_model, n_warmup_steps):
        self._optimizer = optimizer
        self.lr_mul = lr_mul
        self.d_model = d_model
        self.n_warmup_steps = n_warmup_steps
        self.n_steps = 0

    def step_and_update_lr(self):
        self.n_steps += 1
        scale = min(self.n_steps ** (-0.5), self.n_steps * self.n_warmup_steps ** (-1.5))
        for group in self._optimizer.param_groups:
            group["lr"] = self.lr_mul * self.d_model ** (-0.5) * scale
        self._optimizer.step()

    def zero_grad(self):
        self._optimizer.zero_grad()


def train_epoch(model, training_data, optimizer):
    model.train()
    total_loss = 0
    for src, gold in training_data:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(src), gold, reduction="sum")
        loss.backward()
        optimizer.step_and_update_lr()
        total_loss += loss.item()
    return total_loss


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    data = [(torch.randn(16, 8), torch.randint(0, 3, (16,))) for _ in range(6)]
    wrapper = globals()["ScheduledOptim"]
    optimizer = wrapper(torch.optim.Adam(model.parameters()), 2.0, 16, 20)
    for epoch in range(3):
        print(epoch, train_epoch(model, data, optimizer))


if __name__ == "__main__":
    main()
