"""What the schedule watches is an option, and its way goes with it; the old name stayed."""
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Config:
    lr: float = 0.1
    patience: int = 1
    metric: str = "accuracy"
    maximize_metric: bool = True


class Plateau:
    def __init__(self, cfg, optimizer):
        self.cfg = cfg
        self.scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(
            optimizer,
            patience=cfg.patience,
            mode="max" if cfg.maximize_metric else "min",
        )

    def step(self, epoch, val_loss=None):
        if val_loss is not None:
            self.scheduler.step(val_loss)


def main(cfg):
    torch.manual_seed(0)
    x = torch.randn(64, 4)
    y = (x[:, 0] > 0).long()
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr)
    plateau = Plateau(cfg, optimizer)
    for epoch in range(3):
        for start in range(0, 64, 16):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x[start : start + 16]), y[start : start + 16])
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            output = model(x)
        metrics = {
            "loss": nn.functional.cross_entropy(output, y).item(),
            "accuracy": (output.argmax(1) == y).float().mean().item(),
        }
        plateau.step(epoch, metrics[cfg.metric])


if __name__ == "__main__":
    main(Config())
