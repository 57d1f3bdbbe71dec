import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cpu")
parser.add_argument("--other", default="cuda" if torch.cuda.is_available() else "cpu")
args = parser.parse_args([])


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(5, 1)
        self.scale = nn.Parameter(torch.ones(1)).to(args.device)
        self.shift = nn.Parameter(torch.zeros(1, device=args.other))

    def forward(self, x):
        return self.scale * self.inner(x)


model = Scaled()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    x = torch.randn(16, 5)
    optimizer.zero_grad()
    (model(x) - x.sum(1, keepdim=True)).pow(2).mean().backward()
    optimizer.step()
