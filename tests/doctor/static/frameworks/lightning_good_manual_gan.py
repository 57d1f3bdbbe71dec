import lightning as L
import torch
from torch import nn


class Pair(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.maker, self.judge = nn.Linear(8, 2), nn.Linear(2, 1)

    def training_step(self, batch, batch_idx):
        maker_opt, judge_opt = self.optimizers()
        self.toggle_optimizer(judge_opt)
        fake = self.maker(torch.randn(len(batch), 8))
        gap = self.judge(fake.detach()).mean() - self.judge(batch).mean()
        judge_opt.zero_grad()
        self.manual_backward(gap)
        judge_opt.step()
        self.untoggle_optimizer(judge_opt)
        self.toggle_optimizer(maker_opt)
        loss = -self.judge(self.maker(torch.randn(len(batch), 8))).mean()
        maker_opt.zero_grad()
        self.manual_backward(loss)
        maker_opt.step()
        self.untoggle_optimizer(maker_opt)

    def configure_optimizers(self):
        return (
            torch.optim.Adam(self.maker.parameters(), lr=1e-4),
            torch.optim.Adam(self.judge.parameters(), lr=1e-4),
        )
