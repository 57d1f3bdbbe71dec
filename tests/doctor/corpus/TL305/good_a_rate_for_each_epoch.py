"""One optimizer, whose rate each epoch sets; and a new one for each seed's new model."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Experiment:
    def __init__(self, seed, lr):
        torch.manual_seed(seed)
        self.model = nn.Linear(4, 1)
        self.lr = lr
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=lr)

    def set_rate(self, epoch):
        for group in self.optimizer.param_groups:
            group["lr"] = self.lr * 0.8**epoch

    def run(self, loader, epochs):
        for epoch in range(epochs):
            self.set_rate(epoch)
            for x, y in loader:
                self.optimizer.zero_grad()
                loss = nn.functional.mse_loss(self.model(x), y)
                loss.backward()
                self.optimizer.step()
        return loss.item()


data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
loader = DataLoader(data, batch_size=16, shuffle=True)
for seed in range(3):
    print(seed, Experiment(seed, 1e-2).run(loader, 4))
