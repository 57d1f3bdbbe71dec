import lightning as L
import torch
from torch import nn


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.body = nn.Linear(8, 3)

    def training_step(self, batch, batch_idx):
        x, y = batch
        optimizer = self.optimizers()
        loss = nn.functional.cross_entropy(self.body(x), y)
        optimizer.zero_grad()
        self.manual_backward(loss)
        optimizer.step()
        self.clip_gradients(optimizer, gradient_clip_val=0.5)  # <- TL105

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)
