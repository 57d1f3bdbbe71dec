"""The schedules are returned, kept in a list, and ticked by a callback."""

import torch
from torch import nn


class Callback:
    def on_epoch_end(self, trainer):
        pass


class ScheduleCallback(Callback):
    def __init__(self, schedulers):
        self.schedulers = schedulers

    def on_epoch_end(self, trainer):
        for scheduler in self.schedulers:
            scheduler.step()


class Module(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, x):
        return self.layer(x)

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=1e-2)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.9)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler}}


class Trainer:
    def __init__(self, module, epochs):
        self.module, self.epochs = module, epochs
        configured = module.configure_optimizers()
        self.optimizer = configured["optimizer"]
        self.callbacks = [ScheduleCallback([configured["lr_scheduler"]["scheduler"]])]

    def fit(self, loader):
        for epoch in range(self.epochs):
            self.module.train()
            for x, y in loader:
                loss = nn.functional.mse_loss(self.module(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            for callback in self.callbacks:
                callback.on_epoch_end(self)
            print(epoch, loss.item(), self.optimizer.param_groups[0]["lr"])


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(96, 4)
    dataset = torch.utils.data.TensorDataset(x, x.mean(dim=1, keepdim=True))
    loader = torch.utils.data.DataLoader(dataset, batch_size=16, shuffle=True)
    Trainer(Module(), epochs=3).fit(loader)
