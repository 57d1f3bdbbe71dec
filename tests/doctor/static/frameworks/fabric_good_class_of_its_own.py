import lightning as L
import torch
from torch import nn


class Loop:
    def __init__(self, model, optimizer, loaders, epochs):
        self.fabric = L.Fabric()
        self.fabric.launch()
        self.model, self.optimizer = self.fabric.setup(model, optimizer)
        self.train_loader, self.val_loader = self.fabric.setup_dataloaders(*loaders)
        self.epochs = epochs
        self.should_stop = False

    def run(self):
        for epoch in range(self.epochs):
            self.train_epoch()
            self.validate()
            if self.should_stop:
                break

    def train_epoch(self):
        self.model.train()
        for batch in self.train_loader:
            self.optimizer.step(closure=lambda: self.closure(batch))

    def closure(self, batch):
        self.optimizer.zero_grad()
        loss = nn.functional.mse_loss(self.model(batch[0]), batch[1])
        self.fabric.backward(loss)
        return loss

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        for x, y in self.val_loader:
            self.fabric.log("val_loss", nn.functional.mse_loss(self.model(x), y))
        self.model.train()
