import lightning as L
import torch
from torch import nn


class Energy(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 64), nn.SiLU(), nn.Linear(64, 1))

    def forces(self, positions):
        positions = positions.requires_grad_(True)
        energy = self.body(positions).sum()
        (slope,) = torch.autograd.grad(energy, positions, create_graph=self.training)
        return -slope

    def training_step(self, batch, batch_idx):
        x, y = batch
        return nn.functional.mse_loss(self.forces(x), y)

    def validation_step(self, batch, batch_idx):
        x, y = batch
        with torch.enable_grad():
            found = self.forces(x)
        self.log("val_mae", (found.detach() - y).abs().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)
