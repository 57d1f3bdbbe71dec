import torch
from torch import nn


class TwoTowers(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.query = nn.Sequential(nn.Linear(6, 16), nn.Tanh())
        self.item = nn.Sequential(nn.Linear(9, 16), nn.Tanh())
        self.project = nn.Linear(16, width)

    def forward(self, query, item):
        return self.project(self.query(query)) @ self.project(self.item(item)).T


class Finetuner:
    def __init__(self, model, rate=1e-3):
        self.model = model
        towers = [*model.query.parameters(), *model.item.parameters()]
        self.optimizer = torch.optim.AdamW(
            [{"params": towers, "lr": rate / 10}, {"params": model.project.parameters()}], lr=rate
        )

    def widen(self, width):
        self.model.project = nn.Linear(16, width)  # <- TL301

    def fit(self, updates):
        for _ in range(updates):
            scores = self.model(torch.randn(20, 6), torch.randn(20, 9))
            loss = nn.functional.cross_entropy(scores, torch.arange(20))
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


torch.manual_seed(3)
tuner = Finetuner(TwoTowers())
tuner.widen(24)
tuner.fit(6)
