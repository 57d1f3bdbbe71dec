import torch
from torch import nn


class Trainer:
    def __init__(self):
        self.encoder, self.decoder = nn.Linear(8, 3), nn.Linear(3, 8)
        self.optimizers = {
            "encoder": torch.optim.Adam(self.encoder.parameters()),
            "decoder": torch.optim.Adam(self.decoder.parameters()),
        }

    def train(self, names, steps=6):
        for _ in range(steps):
            x = torch.randn(16, 8)
            for each in self.optimizers.values():
                each.zero_grad()
            (self.decoder(self.encoder(x)) - x).pow(2).mean().backward()
            for name in names:
                self.optimizers[name].step()


torch.manual_seed(0)
trainer = Trainer()
trainer.train(["decoder"])
trainer.train(["encoder", "decoder"])
