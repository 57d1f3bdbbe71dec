import argparse

import torch
import torch.nn.functional as F
from torch import nn


class CosineHead(nn.Module):
    def __init__(self, dim, classes, device):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(classes, dim)).to(device)  # <- TL307

    def forward(self, h):
        return 4 * F.linear(F.normalize(h, dim=-1), F.normalize(self.weight, dim=-1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args([])
    device = torch.device(args.device)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 16), nn.GELU(), CosineHead(16, 3, device)).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(8):
        x = torch.randn(32, 6, device=device)
        loss = F.cross_entropy(net(x), x[:, :3].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


main()
