import lightning as L
import torch
from torch import nn
from torchvision.models import resnet18


class Tuned(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.backbone = resnet18(weights="DEFAULT")
        self.backbone.requires_grad_(False)
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(1000, 3))

    def on_train_epoch_start(self):
        self.backbone.eval()

    def training_step(self, batch, batch_idx):
        x, y = batch
        with torch.no_grad():
            features = self.backbone(x)
        return nn.functional.cross_entropy(self.head(features), y)

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_loss", nn.functional.cross_entropy(self.head(self.backbone(x)), y))

    def configure_optimizers(self):
        return torch.optim.Adam(self.head.parameters(), lr=1e-3)
