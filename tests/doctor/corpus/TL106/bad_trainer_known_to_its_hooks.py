"""The hooks hold the trainer weakly; its loop never steps."""

import weakref

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Printing:
    trainer = None

    def after_step(self):
        print(self.trainer.count)


class Trainer:
    def __init__(self, net, loader):
        self.net, self.loader, self.count = net, loader, 0
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        self.hooks = []

    def register(self, *hooks):
        for hook in hooks:
            hook.trainer = weakref.proxy(self)
            self.hooks.append(hook)

    def train(self):
        for inputs, targets in self.loader:
            self.optimizer.zero_grad()
            nn.functional.cross_entropy(self.net(inputs), targets).backward()  # <- TL106
            self.count += 1
            for hook in self.hooks:
                hook.after_step()


rows = TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,)))
trainer = Trainer(nn.Linear(4, 2), DataLoader(rows, batch_size=8, shuffle=True))
trainer.register(Printing())
trainer.train()
