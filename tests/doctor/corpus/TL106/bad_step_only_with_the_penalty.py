"""The step of the everyday loss is missing; that of the regularizer is there."""
import torch
from torch import nn


class Trainer:
    def __init__(self, every):
        self.net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.05)
        self.every = every

    def update(self, count, x, y):
        self.optimizer.zero_grad()
        loss = nn.functional.mse_loss(self.net(x), y)
        loss.backward()  # <- TL106
        if count % self.every == 0:
            self.optimizer.zero_grad()
            smooth = (self.net(x + 0.01 * torch.randn_like(x)) - self.net(x)).pow(2).mean()
            smooth.backward()
            self.optimizer.step()
        return loss.item()


torch.manual_seed(0)
trainer = Trainer(3)
for count, x in enumerate(torch.randn(9, 6, 4)):
    last = trainer.update(count, x, x.sum(1, keepdim=True))
print(last)
