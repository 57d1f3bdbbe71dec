from dataclasses import dataclass

import torch
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

WATCHED = "val_f1"


@dataclass
class Scores:
    loss: float
    f1: float

    def as_dict(self):
        return {"val_loss": self.loss, "val_f1": self.f1}


class Trainer:
    def __init__(self, model, monitor=WATCHED):
        self.model, self.monitor = model, monitor
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        self.scheduler = ReduceLROnPlateau(self.optimizer, patience=2)

    def train(self, x, y):
        for rows in torch.randperm(len(x)).split(16):
            self.optimizer.zero_grad()
            nn.functional.cross_entropy(self.model(x[rows]), y[rows]).backward()
            self.optimizer.step()

    @torch.no_grad()
    def validate(self, x, y):
        scores = self.model(x)
        hits = (scores.argmax(1) * y).sum()
        loss = nn.functional.cross_entropy(scores, y).item()
        f1 = 2 * hits / (scores.argmax(1).sum() + y.sum()).clamp(min=1)
        return Scores(loss, f1.item())

    def fit(self, train, val, epochs):
        for epoch in range(epochs):
            self.train(*train)
            results = self.validate(*val).as_dict()
            self.scheduler.step(results[self.monitor])  # <- TL604


torch.manual_seed(0)
x = torch.randn(96, 4)
y = (x[:, 0] > 0).long()
Trainer(nn.Linear(4, 2)).fit((x[:64], y[:64]), (x[64:], y[64:]), epochs=3)
