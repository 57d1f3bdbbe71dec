import torch
import torch.nn as nn


class Trainer:
    def __init__(self, model, loader, every=4):
        self.model, self.loader, self.every = model, loader, every
        self.opt = torch.optim.Adam(model.parameters(), lr=1e-3)

    def update(self):
        self.opt.step()
        self.opt.zero_grad()

    def epoch(self):
        for i, (x, y) in enumerate(self.loader):
            (nn.functional.mse_loss(self.model(x), y) / self.every).backward()
            if (i + 1) % self.every == 0:
                self.update()
        if len(self.loader) % self.every != 0:
            self.update()


torch.manual_seed(0)
ds = torch.utils.data.TensorDataset(torch.randn(60, 3), torch.randn(60, 1))
trainer = Trainer(nn.Linear(3, 1), torch.utils.data.DataLoader(ds, batch_size=10, shuffle=True))
for _ in range(2):
    trainer.epoch()
