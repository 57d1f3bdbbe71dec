import lightning as L
import torch
from torch import nn


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.Dropout(0.4), nn.Linear(32, 3))
        self.fixed = torch.randn(4, 8)
        self.losses = []

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.cross_entropy(self.body(x), y)
        self.losses.append(loss.detach())
        return loss

    def on_train_epoch_end(self):
        self.eval()
        with torch.no_grad():
            print(self.body(self.fixed).argmax(1), torch.stack(self.losses).mean())
        self.losses.clear()
        self.train()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)
