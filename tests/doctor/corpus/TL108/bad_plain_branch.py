"""Mixed precision is off by default: the branch without it computes no gradients."""
import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--amp", action="store_true")
args = parser.parse_args()
torch.manual_seed(0)
model = nn.Linear(6, 3)
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scaler = torch.amp.GradScaler("cpu") if args.amp else None
for x in torch.randn(6, 8, 6):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
    if scaler is not None:
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
    else:
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()  # <- TL108
print(loss.item())
