import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--bn-eps", type=float, default=0.05)
parser.add_argument("--bn-momentum", type=float, default=0.1)
args = parser.parse_args()
VAR_EPS = 0.02

model = nn.Sequential(
    nn.Linear(3, 8), nn.BatchNorm1d(8, args.bn_eps), nn.ReLU(), nn.BatchNorm1d(8, VAR_EPS)
)
print(model(torch.randn(5, 3)).shape)
