"""No layer of this model knows the difference between the two modes."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class MLP(nn.Module):
    def __init__(self, sizes=(8, 32, 32, 1)):
        super().__init__()
        layers = []
        for a, b in zip(sizes[:-1], sizes[1:]):
            layers += [nn.Linear(a, b), nn.Tanh()]
        self.layers = nn.Sequential(*layers[:-1])

    def forward(self, x):
        return self.layers(x).squeeze(-1)


class Experiment:
    def __init__(self):
        torch.manual_seed(0)
        x = torch.randn(256, 8)
        y = x.pow(2).sum(1)
        self.train_data = DataLoader(TensorDataset(x[:192], y[:192]), batch_size=32, shuffle=True)
        self.val_data = DataLoader(TensorDataset(x[192:], y[192:]), batch_size=32)
        self.model = MLP()
        self.optim = torch.optim.Adam(self.model.parameters(), lr=1e-2)
        self.loss = nn.MSELoss()

    def validate(self):
        self.model.eval()
        with torch.no_grad():
            total = sum(self.loss(self.model(x), y).item() * len(x) for x, y in self.val_data)
        return total / len(self.val_data.dataset)

    def run(self, epochs):
        for epoch in range(epochs):
            for x, y in self.train_data:
                self.optim.zero_grad()
                loss = self.loss(self.model(x), y)
                loss.backward()
                self.optim.step()
            print(f"{epoch}: {self.validate():.4f}")


if __name__ == "__main__":
    Experiment().run(epochs=3)
