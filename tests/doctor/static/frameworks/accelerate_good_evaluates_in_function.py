import torch
from accelerate import Accelerator
from torch import nn


class Run:
    def __init__(self, net, train, valid):
        self.accelerator = Accelerator()
        self.net = net
        self.optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4)
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, 3e-4, total_steps=10 * len(train)
        )
        self.net, self.optimizer, self.train_loader, self.val_loader, self.schedule = (
            self.accelerator.prepare(self.net, self.optimizer, train, valid, self.schedule)
        )

    def fit(self):
        for epoch in range(10):
            self.net.train()
            for batch in self.train_loader:
                loss = self.net(**batch).loss
                self.accelerator.backward(loss)
                self.optimizer.step()
                self.schedule.step()
                self.optimizer.zero_grad()
            self.score()

    @torch.inference_mode()
    def score(self):
        self.net.eval()
        losses = []
        for batch in self.val_loader:
            loss = self.net(**batch).loss
            losses.append(self.accelerator.gather(loss.repeat(len(batch["labels"]))))
        return torch.cat(losses).mean()
