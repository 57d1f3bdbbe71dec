import torch
import lightning as L
from torch import nn
from torch.nn import functional as F
class Lit(L.LightningModule):
    def __init__(self, lr=1e-3, epochs=10):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Linear(4, 3)
    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        self.log("train_loss", loss)
        return loss
    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_loss", F.cross_entropy(self.net(x), y))
    def optimizer_step(self, epoch, batch_idx, optimizer, closure):
        optimizer.step(closure=closure)
        if self.trainer.global_step < 500:
            for pg in optimizer.param_groups:
                pg["lr"] = (self.trainer.global_step + 1) / 500 * self.hparams.lr
    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        return optimizer
