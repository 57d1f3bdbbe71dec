import torch
import lightning as L
from torch import nn
from torch.nn import functional as F
class Lit(L.LightningModule):
    def __init__(self, lr=1e-3, epochs=10):
        super().__init__()
        self.save_hyperparameters()
        self.backbone = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.1))
        self.head = nn.Linear(8, 3)
        for p in self.backbone.parameters():
            p.requires_grad = False
    def on_train_epoch_start(self):
        self.backbone.eval()
    def training_step(self, batch, batch_idx):
        x, y = batch
        with torch.no_grad():
            z = self.backbone(x)
        return F.cross_entropy(self.head(z), y)
    def configure_optimizers(self):
        return torch.optim.SGD(self.head.parameters(), lr=0.1)
