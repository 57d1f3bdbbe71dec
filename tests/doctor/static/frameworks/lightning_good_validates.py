import lightning as L
import torch
from torch import nn


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.Dropout(0.4), nn.Linear(32, 3))
        self.outputs = []

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.cross_entropy(self.body(x), y)
        self.log("train_loss", loss)
        return loss

    def on_validation_epoch_start(self):
        self.outputs.clear()

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self.body(x)
        self.outputs.append((logits, y))
        self.log("val_loss", nn.functional.cross_entropy(logits, y), prog_bar=True)

    def on_validation_epoch_end(self):
        logits = torch.cat([each for each, _ in self.outputs])
        truth = torch.cat([each for _, each in self.outputs])
        self.log("accuracy", (logits.argmax(1) == truth).float().mean())

    def test_step(self, batch, batch_idx):
        return self.validation_step(batch, batch_idx)

    def predict_step(self, batch, batch_idx, dataloader_idx=0):
        return self.body(batch[0]).softmax(1)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-3)
        schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": schedule, "monitor": "val_loss"},
        }
