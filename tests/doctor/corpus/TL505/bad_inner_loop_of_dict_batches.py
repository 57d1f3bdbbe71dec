"""A sampler gives dict batches; three of them make one update, in a method."""

import torch
from torch import nn


class Pool:
    def __init__(self, rows):
        self.rows = rows
        self.labels = (rows.sum(1) > 0).long()

    def sample(self, count):
        chosen = torch.randint(len(self.rows), (count,))
        return {"rows": self.rows[chosen], "labels": self.labels[chosen]}


class Learner:
    def __init__(self, pool, parts):
        self.pool, self.parts = pool, parts
        self.model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 2))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05)

    def update(self):
        self.optimizer.zero_grad()
        for _ in range(self.parts):
            batch = self.pool.sample(16)
            rows = batch["rows"].float()
            loss = nn.functional.cross_entropy(self.model(rows), batch["labels"])
            loss.backward()  # <- TL505
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()


torch.manual_seed(0)
learner = Learner(Pool(torch.randn(200, 6)), parts=3)
for step in range(10):
    learner.update()
