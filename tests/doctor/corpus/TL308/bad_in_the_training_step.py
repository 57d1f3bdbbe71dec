import torch
from torch import nn


class Trainer:
    def __init__(self, encoder):
        self.encoder = encoder
        self.opt = torch.optim.SGD(encoder.parameters(), lr=0.1)

    def project(self, h):
        layer = nn.Linear(h.size(-1), 2)  # <- TL308
        return layer(h)

    def training_step(self, x, y):
        loss = (self.project(torch.tanh(self.encoder(x))) - y).pow(2).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()

    def fit(self, batches, epochs=2):
        for _ in range(epochs):
            for x, y in batches:
                self.training_step(x, y)


torch.manual_seed(0)
Trainer(nn.Linear(4, 6)).fit([(torch.randn(8, 4), torch.randn(8, 2)) for _ in range(3)])
