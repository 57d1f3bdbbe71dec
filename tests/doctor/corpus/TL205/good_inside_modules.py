"""Modules that call the forward of their base, of their parts, and their own."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class NoisyLinear(nn.Linear):
    def forward(self, x):
        out = super().forward(x)
        if self.training:
            out = out + 0.01 * torch.randn_like(out)
        return out


class LowRank(nn.Linear):
    def __init__(self, inputs, outputs, rank=2):
        super().__init__(inputs, outputs)
        self.down = nn.Linear(inputs, rank, bias=False)
        self.up = nn.Linear(rank, outputs, bias=False)

    def forward(self, x):
        return nn.Linear.forward(self, x) + self.up(self.down(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = NoisyLinear(10, 16)
        self.decoder = LowRank(16, 10)

    def forward(self, x):
        return self.decoder(torch.relu(self.encoder(x)))

    def encode(self, x):
        return self.encoder.forward(x)

    def training_loss(self, x):
        return F.mse_loss(self.forward(x), x)


if __name__ == "__main__":
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(torch.randn(64, 10)), batch_size=16, shuffle=True)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(2):
        for (x,) in loader:
            optimizer.zero_grad()
            loss = net.training_loss(x)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item(), net.encode(x).shape)
