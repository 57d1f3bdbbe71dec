from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class TrainConfig:
    lr: float = 1e-2
    gradient_accumulation_steps: int = 2
    epochs: int = 2


class Trainer:
    def __init__(self, cfg: TrainConfig, model: nn.Module, loader):
        self.cfg, self.model, self.loader = cfg, model, loader
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=cfg.lr, momentum=0.9)

    def train(self):
        for epoch in range(self.cfg.epochs):
            for step, batch in enumerate(self.loader):
                loss = F.mse_loss(self.model(batch["x"]), batch["y"])
                loss.backward()  # <- TL505
                if (step + 1) % self.cfg.gradient_accumulation_steps == 0 or step + 1 == len(self.loader):
                    self.optimizer.step()
                    self.optimizer.zero_grad()
            print(epoch, loss.item())


torch.manual_seed(0)
loader = [{"x": torch.randn(8, 4), "y": torch.randn(8, 1)} for _ in range(5)]
Trainer(TrainConfig(), nn.Linear(4, 1), loader).train()
