import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--freeze", action="store_true")
args = parser.parse_args()

torch.manual_seed(0)
encoder, decoder = nn.Linear(4, 3), nn.Linear(3, 4)
if args.freeze:
    encoder.requires_grad_(False)
groups = [{"params": encoder.parameters(), "lr": 1e-4}, {"params": decoder.parameters()}]
optimizer = torch.optim.Adam(groups, lr=1e-3)
for _ in range(4):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    nn.functional.mse_loss(decoder(encoder(x)), x).backward()
    optimizer.step()
