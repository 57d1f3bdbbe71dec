import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--weights", default="", help="a file to begin with")
args = parser.parse_args()

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 2))
if args.weights:
    net.load_state_dict(torch.load(args.weights, weights_only=False))  # <- TL802
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(5):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(torch.randn(8, 3)), torch.randint(0, 2, (8,)))
    loss.backward()
    optimizer.step()
print(loss.item())
