import torch
import lightning as L
from torch import nn
from torch.nn import functional as F
class Lit(L.LightningModule):
    def __init__(self, lr=1e-3, epochs=10):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Linear(4, 3)
        self.automatic_optimization = False
    def update(self, loss):
        opt = self.optimizers()
        opt.zero_grad()
        self.manual_backward(loss)
        opt.step()
    def training_step(self, batch, batch_idx):
        x, y = batch
        self.update(F.cross_entropy(self.net(x), y))
    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        return optimizer
