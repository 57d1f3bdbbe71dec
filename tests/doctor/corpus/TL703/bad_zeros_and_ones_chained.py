"""The noise comes first, the signals after it."""

import torch
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset


def main():
    torch.manual_seed(1)
    noise = TensorDataset(torch.randn(96, 8), torch.zeros(96).long())
    wave = torch.linspace(0, 6, 8).sin()
    signals = TensorDataset(wave + 0.5 * torch.randn(96, 8), torch.ones(96).long())
    both = ConcatDataset([noise, signals])
    loader = DataLoader(both, batch_size=16)  # <- TL703
    net = nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 2))
    adam = torch.optim.Adam(net.parameters(), lr=1e-2)
    for epoch in range(4):
        for x, y in loader:
            loss = nn.functional.cross_entropy(net(x), y)
            adam.zero_grad()
            loss.backward()
            adam.step()


main()
