"""A trainer that counts what is in its window, and empties it before each epoch."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, per_update):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        self.per_update = per_update

    def before_epoch(self):
        self.model.train()
        self.pending = 0

    def after_batch(self):
        self.pending += 1
        if self.pending >= self.per_update:
            self.optimizer.step()  # <- TL506
            self.optimizer.zero_grad()
            self.pending = 0

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            self.before_epoch()
            for x, y in loader:
                loss = nn.functional.cross_entropy(self.model(x), y) / self.per_update
                loss.backward()
                self.after_batch()
            print(epoch, loss.item() * self.per_update)


torch.manual_seed(0)
data = TensorDataset(torch.randn(160, 4), torch.randint(3, (160,)))
trainer = Trainer(nn.Linear(4, 3), per_update=4)
trainer.fit(DataLoader(data, batch_size=16, shuffle=True), epochs=3)
