import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--pieces", type=int, default=10)
parser.add_argument("--gather", type=int, default=4)
args = parser.parse_args([])


def maps(count):
    coarse = torch.randn(count, 1, 3, 3)
    fine = F.interpolate(coarse, scale_factor=4, mode="bilinear")
    return torch.cat([fine.tanh(), torch.rand_like(fine)], 1), fine


torch.manual_seed(5)
loader = DataLoader(TensorDataset(*maps(300)), batch_size=args.pieces, shuffle=True)
net = nn.Sequential(nn.Conv2d(2, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 1, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(3):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader, start=1):
        loss = F.mse_loss(net(x), y) / args.gather
        loss.backward()
        if i % args.gather == 0:
            optimizer.step()  # <- TL506
            optimizer.zero_grad()
    print(epoch, loss.item())
