import torch
from torch import nn


class Updater:
    def __init__(self, optimizer, every):
        self.optimizer, self.every, self.count = optimizer, every, 0

    def __call__(self, loss):
        (loss / self.every).backward()
        self.count += 1
        if self.count % self.every == 0:
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)


torch.manual_seed(0)
model = nn.Linear(4, 2)
update = Updater(torch.optim.SGD(model.parameters(), lr=0.1), 2)
for x in torch.randn(8, 8, 4):
    update(nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long()))
