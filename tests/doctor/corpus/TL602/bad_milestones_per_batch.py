from dataclasses import dataclass

import torch
from torch import nn, optim


@dataclass
class Config:
    epochs: int = 12
    batch_size: int = 20
    lr: float = 0.05
    gamma: float = 0.1


class Trainer:
    def __init__(self, cfg: Config, model: nn.Module, dataset):
        self.cfg, self.model = cfg, model
        self.loader = torch.utils.data.DataLoader(dataset, batch_size=cfg.batch_size, shuffle=True)
        self.optimizer = optim.SGD(model.parameters(), lr=cfg.lr, momentum=0.9)
        self.scheduler = optim.lr_scheduler.MultiStepLR(self.optimizer, [6, 9], gamma=cfg.gamma)
        self.loss = nn.SmoothL1Loss()

    def train_step(self, x, y):
        self.optimizer.zero_grad()
        loss = self.loss(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        self.scheduler.step()  # <- TL602
        return loss.item()

    def fit(self):
        for epoch in range(self.cfg.epochs):
            self.model.train()
            losses = []
            for x, y in self.loader:
                losses.append(self.train_step(x, y))
            print(f"{epoch:3d} {sum(losses) / len(losses):.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(200, 7)
    y = torch.sin(x).sum(dim=1, keepdim=True)
    net = nn.Sequential(nn.Linear(7, 16), nn.Tanh(), nn.Linear(16, 1))
    Trainer(Config(), net, torch.utils.data.TensorDataset(x, y)).fit()
