"""The count begins with each epoch, and what is left in the window is applied at its end."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Window:
    def __init__(self, optimizer, size):
        self.optimizer, self.size, self.filled, self.total = optimizer, size, 0, 0

    def open(self):
        self.filled = 0

    def add(self, loss):
        (loss / self.size).backward()
        self.filled += 1
        if self.filled == self.size:
            self.apply()

    def apply(self):
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.filled = 0

    def close(self):
        if self.filled:
            self.apply()


torch.manual_seed(0)
data = TensorDataset(torch.randn(112, 5), torch.randn(112, 1))
loader = DataLoader(data, batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1))
window = Window(torch.optim.SGD(model.parameters(), lr=0.05), 3)
for epoch in range(4):
    window.open()
    for x, y in loader:
        window.add(nn.functional.mse_loss(model(x), y))
    window.close()
