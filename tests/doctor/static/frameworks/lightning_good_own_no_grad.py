"""The Trainer sets eval mode before validation: `no_grad` by hand, and a parameter that is moved there,
change nothing about that."""

import pytorch_lightning as pl
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 2, 1)
        )

    def forward(self, x):
        return self.layers(x)

    def shift(self, value):
        with torch.no_grad():
            self.layers[3].bias += value


class Segmenter(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = Net()
        self.found = []

    def training_step(self, batch, batch_index):
        images, masks = batch
        return nn.functional.cross_entropy(self.net(images), masks)

    def validation_step(self, batch, batch_index):
        images, masks = batch
        with torch.no_grad():
            scores = self.net(images)
            self.net.shift(0.01)
        self.found.append((scores.argmax(1) == masks).float().mean())

    def on_validation_epoch_end(self):
        self.log("accuracy", sum(self.found) / len(self.found))
        self.found.clear()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)
