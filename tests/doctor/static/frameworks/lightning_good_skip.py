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
        if y.sum() == 0:
            return None
        out = self.net(x)
        loss = F.cross_entropy(out, y)
        return {"loss": loss, "out": out.detach()}
    def on_train_batch_end(self, outputs, batch, batch_idx):
        self.last = outputs["loss"].item()
    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        return optimizer
