import torch
import lightning as L
from torch import nn
from torch.nn import functional as F
class Lit(L.LightningModule):
    def __init__(self, lr=1e-3, epochs=10):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Linear(4, 3)
    def training_step(self, batch, batch_idx, optimizer_idx):
        x, y = batch
        if optimizer_idx == 0:
            return F.cross_entropy(self.net(x), y)
        return F.cross_entropy(self.net(x), 1 - y)
    def configure_optimizers(self):
        return [torch.optim.Adam(self.parameters()), torch.optim.Adam(self.parameters())], []
