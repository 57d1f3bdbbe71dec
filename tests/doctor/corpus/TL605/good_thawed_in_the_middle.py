"""The backbone is thawed after three epochs: a new optimizer, a new cosine for the rest."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X = torch.randn(96, 6)
Y = (X.sum(1) > 0).long()
loader = DataLoader(TensorDataset(X, Y), batch_size=16, shuffle=True)


class Trainer:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))
        self.frozen_epochs, self.epochs = 3, 9
        self.start_phase(self.net[2].parameters(), self.frozen_epochs, 1e-2)

    def start_phase(self, params, epochs, lr):
        self.opt = torch.optim.SGD(params, lr, momentum=0.9)
        self.sched = torch.optim.lr_scheduler.CosineAnnealingLR(self.opt, epochs)

    def fit(self):
        for epoch in range(self.epochs):
            if epoch == self.frozen_epochs:
                self.start_phase(self.net.parameters(), self.epochs - self.frozen_epochs, 1e-3)
            for x, y in loader:
                self.opt.zero_grad()
                F.cross_entropy(self.net(x), y).backward()
                self.opt.step()
            self.sched.step()


Trainer().fit()
