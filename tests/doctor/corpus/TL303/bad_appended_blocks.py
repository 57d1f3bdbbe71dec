"""Residual blocks, appended one by one to a plain list."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, 3, padding=1)
        self.act = nn.ReLU()

    def forward(self, x):
        return x + self.act(self.conv(x))


class WaveNet(nn.Module):
    def __init__(self, channels=8, depth=3):
        super().__init__()
        self.first = nn.Conv1d(1, channels, 1)
        self.blocks = []  # <- TL303
        for _ in range(depth):
            self.blocks.append(Block(channels))
        self.last = nn.Conv1d(channels, 1, 1)

    def forward(self, x):
        x = self.first(x)
        for i in range(len(self.blocks)):
            x = self.blocks[i](x)
        return self.last(x)


torch.manual_seed(0)
signal = torch.randn(48, 1, 12)
loader = DataLoader(TensorDataset(signal, signal.cumsum(-1)), batch_size=12, shuffle=True)
wavenet = WaveNet()
optimizer = torch.optim.Adam(wavenet.parameters(), lr=1e-3)
for epoch in range(2):
    for noisy, clean in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(wavenet(noisy), clean)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
