"""A polynomial decay by a method: its length is that of one epoch, in a run of many."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, loader, epochs):
        self.model, self.loader, self.epochs = model, loader, epochs
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        self.max_iter = len(loader)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self.poly)  # <- TL605

    def poly(self, iteration):
        return max(0.0, 1 - iteration / self.max_iter) ** 0.9

    def run(self):
        for epoch in range(self.epochs):
            for image, mask in self.loader:
                self.optimizer.zero_grad()
                loss = nn.functional.cross_entropy(self.model(image), mask)
                loss.backward()
                self.optimizer.step()
                self.schedule.step()
            print(epoch, loss.item())


torch.manual_seed(0)
data = TensorDataset(torch.randn(96, 1, 6, 6), torch.randint(0, 2, (96, 6, 6)))
net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 2, 1))
Trainer(net, DataLoader(data, batch_size=8, shuffle=True), epochs=8).run()
