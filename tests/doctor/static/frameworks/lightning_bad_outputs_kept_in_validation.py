import lightning as L
import torch
from torch import nn


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 3)
        self.scores = []

    def training_step(self, batch, batch_idx):
        x, y = batch
        logits = self.body(x)
        self.scores.append(logits)  # <- TL204
        return nn.functional.cross_entropy(logits, y)

    def on_fit_end(self):
        print(torch.cat(self.scores).mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)
