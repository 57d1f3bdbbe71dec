"""A function with a plain name is the transform of everything, and draws."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split


def breathe(curve):
    stretched = curve * np.random.uniform(0.7, 1.3)
    return torch.as_tensor(stretched + np.random.normal(0, 0.1, curve.shape), dtype=torch.float32)


class Breaths(Dataset):
    def __init__(self, curves, volumes, transform):
        self.curves, self.volumes = curves, volumes
        self._transform = transform

    def __len__(self):
        return len(self.volumes)

    def __getitem__(self, at):
        curve = self._transform(self.curves[at])
        return curve, self.volumes[at]


def run(epochs=3):
    curves = np.random.default_rng(0).normal(size=(150, 10))
    volumes = torch.tensor(curves[:, :3].sum(1, keepdims=True), dtype=torch.float32)
    parts = random_split(Breaths(curves, volumes, breathe), [110, 40])  # <- TL713
    learn = DataLoader(parts[0], batch_size=22, shuffle=True)
    check = DataLoader(parts[1], batch_size=40)
    net = nn.Linear(10, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02)
    for epoch in range(epochs):
        net.train()
        for curve, volume in learn:
            optimizer.zero_grad()
            nn.functional.mse_loss(net(curve), volume).backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            for curve, volume in check:
                print(epoch, nn.functional.mse_loss(net(curve), volume).item())


if __name__ == "__main__":
    torch.manual_seed(0)
    np.random.seed(0)
    run()
