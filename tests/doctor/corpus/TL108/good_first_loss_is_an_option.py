"""Two updates an iteration; the first loss is switched by an option and by a warm-up."""
import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--denoise", action="store_true")
args = parser.parse_args([])
torch.manual_seed(0)
net = nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(6, 8, 4):
    optimizer.zero_grad()
    extra = (net(x + torch.randn_like(x)) - x).pow(2).mean()
    if args.denoise:
        extra.backward()
    optimizer.step()
    optimizer.zero_grad()
    loss = (net(x) - x).pow(2).mean()
    loss.backward()
    optimizer.step()
print(loss.item(), extra.item())
