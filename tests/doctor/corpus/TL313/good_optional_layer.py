"""A flag times a list of one layer: the layer is there or not."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, width, norm, dropout=0.0):
        super().__init__()
        layers = [nn.Linear(10, width)]
        layers += norm * [nn.BatchNorm1d(width)]
        layers += [nn.ReLU()] + [nn.PReLU()] * (dropout > 0)
        self.net = nn.Sequential(*layers, nn.Linear(width, 3))

    def forward(self, x):
        return self.net(x)


def train(loader, norm):
    model = Net(16, norm)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(2):
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    x, y = torch.randn(96, 10), torch.randint(0, 3, (96,))
    train(DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True), norm=True)
