"""A step function that makes its optimizer anew for every batch."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, net, lr=0.05):
        self.net = net
        self.lr = lr
        self.mse = nn.MSELoss()

    def train_step(self, inputs, targets):
        optimizer = torch.optim.SGD(self.net.parameters(), lr=self.lr, momentum=0.9)  # <- TL305
        optimizer.zero_grad()
        loss = self.mse(self.net(inputs), targets)
        loss.backward()
        optimizer.step()
        return loss.item()

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            for inputs, targets in loader:
                loss = self.train_step(inputs, targets)
            print(f"epoch {epoch}: {loss:.4f}")


torch.manual_seed(0)
x = torch.randn(96, 3)
loader = DataLoader(TensorDataset(x, x.sin().sum(1, keepdim=True)), batch_size=16, shuffle=True)
Trainer(nn.Sequential(nn.Linear(3, 24), nn.Tanh(), nn.Linear(24, 1))).fit(loader, epochs=3)
