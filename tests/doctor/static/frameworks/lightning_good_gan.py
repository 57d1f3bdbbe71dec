import torch
import lightning as L
from torch import nn
from torch.nn import functional as F
class GAN(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.g = nn.Linear(4, 8)
        self.d = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 1))
    def training_step(self, batch, batch_idx):
        real, _ = batch
        opt_g, opt_d = self.optimizers()
        z = torch.randn(real.shape[0], 4, device=self.device)
        self.toggle_optimizer(opt_g)
        loss_g = F.binary_cross_entropy_with_logits(self.d(self.g(z)), torch.ones(real.shape[0], 1))
        opt_g.zero_grad()
        self.manual_backward(loss_g)
        opt_g.step()
        self.untoggle_optimizer(opt_g)
        self.toggle_optimizer(opt_d)
        fake = self.g(z).detach()
        loss_d = F.binary_cross_entropy_with_logits(self.d(real), torch.ones(real.shape[0], 1)) + F.binary_cross_entropy_with_logits(self.d(fake), torch.zeros(real.shape[0], 1))
        opt_d.zero_grad()
        self.manual_backward(loss_d)
        opt_d.step()
        self.untoggle_optimizer(opt_d)
    def on_train_epoch_end(self):
        for scheduler in self.lr_schedulers():
            scheduler.step()
    def configure_optimizers(self):
        opt_g = torch.optim.Adam(self.g.parameters(), lr=2e-4, betas=(0.5, 0.999))
        opt_d = torch.optim.Adam(self.d.parameters(), lr=2e-4, betas=(0.5, 0.999))
        sched_g = torch.optim.lr_scheduler.ExponentialLR(opt_g, 0.99)
        sched_d = torch.optim.lr_scheduler.ExponentialLR(opt_d, 0.99)
        return [opt_g, opt_d], [sched_g, sched_d]
