"""An option leaves out the backward; the step then does nothing, and is meant not to."""
import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--dry-run", action="store_true")
args = parser.parse_args()
torch.manual_seed(0)
model = nn.Linear(4, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(5, 8, 4):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(model(x), x[:, :2].argmax(1))
    if args.dry_run:
        print("would train on", loss.item())
    else:
        loss.backward()
    opt.step()
