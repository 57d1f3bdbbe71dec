import torch
import lightning as L
from torch import nn
from torch.nn import functional as F
class Lit(L.LightningModule):
    def __init__(self, lr=1e-3, epochs=10):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Linear(4, 3)
        import copy
        self.ema = copy.deepcopy(self.net).requires_grad_(False).eval()
    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        self.log("train_loss", loss)
        return loss
    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_loss", F.cross_entropy(self.net(x), y))
    def on_train_batch_end(self, outputs, batch, batch_idx):
        with torch.no_grad():
            for a, b in zip(self.ema.parameters(), self.net.parameters()):
                a.lerp_(b, 0.01)
    def configure_optimizers(self):
        groups = [{"params": [p for n, p in self.net.named_parameters() if "bias" in n], "weight_decay": 0.0}, {"params": [p for n, p in self.net.named_parameters() if "bias" not in n]}]
        return torch.optim.AdamW(groups, lr=self.hparams.lr)
