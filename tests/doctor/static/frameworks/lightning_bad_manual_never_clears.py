import torch
import lightning as L
from torch import nn
from torch.nn import functional as F
class Lit(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.net = nn.Linear(4, 3)
    def training_step(self, batch, batch_idx):
        x, y = batch
        opt = self.optimizers()
        loss = F.cross_entropy(self.net(x), y)
        self.manual_backward(loss)
        opt.step()  # <- TL102
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)
