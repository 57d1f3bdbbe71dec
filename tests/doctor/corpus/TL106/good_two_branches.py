"""With and without mixed precision, clipped by hand: both branches step."""
import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--optimizer", default="sgd")
parser.add_argument("--amp", action="store_true")
args = parser.parse_args()
torch.manual_seed(0)
model = nn.Linear(6, 3)
if args.optimizer == "sgd":
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
elif args.optimizer == "adam":
    optimizer = torch.optim.Adam(model.parameters())
else:
    raise ValueError(args.optimizer)
scaler = torch.amp.GradScaler("cpu") if args.amp else None


def shrink(parameters, limit):
    grads = [p.grad for p in parameters if p.grad is not None]
    norm = torch.norm(torch.stack([g.norm() for g in grads]))
    for g in grads:
        g.mul_((limit / (norm + 1e-6)).clamp(max=1.0))


for x in torch.randn(6, 8, 6):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
    if scaler is None:
        loss.backward()
        shrink(model.parameters(), 1.0)
        optimizer.step()
    else:
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        shrink(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
print(loss.item())
