import torch
import torch.nn as nn
from torch.optim.lr_scheduler import (
    CosineAnnealingLR,
    ExponentialLR,
    LinearLR,
    LRScheduler,
    SequentialLR,
)


class GradualWarmup(LRScheduler):
    """Ramps up, then hands over to another schedule."""

    def __init__(self, optimizer, length, after):
        self.length, self.after = length, after
        super().__init__(optimizer)

    def get_lr(self):
        if self.last_epoch >= self.length:
            return self.after.get_last_lr()
        return [base * (self.last_epoch + 1) / self.length for base in self.base_lrs]

    def step(self, epoch=None):
        if self.last_epoch >= self.length:
            self.after.step()
        super().step(epoch)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    epochs, warmup = 5, 2
    x = torch.randn(96, 6)
    y = x[:, :2].argmax(dim=1)
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(x, y), batch_size=16, shuffle=True
    )
    model = nn.Linear(6, 2)
    head = nn.Linear(6, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    head_optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    cosine = CosineAnnealingLR(optimizer, T_max=epochs - warmup)
    scheduler = SequentialLR(
        optimizer, [LinearLR(optimizer, 0.1, total_iters=warmup), cosine], milestones=[warmup]
    )
    head_scheduler = GradualWarmup(head_optimizer, warmup, ExponentialLR(head_optimizer, 0.9))
    for epoch in range(epochs):
        for data, target in loader:
            loss = nn.functional.cross_entropy(model(data) + head(data), target)
            optimizer.zero_grad()
            head_optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            head_optimizer.step()
        for each in (scheduler, head_scheduler):
            each.step()
        print(epoch, loss.item(), optimizer.param_groups[0]["lr"])


if __name__ == "__main__":
    main()
