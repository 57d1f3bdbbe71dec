"""A loop that counts its updates itself, evaluates at the last one too, and then breaks."""
import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--half", action="store_true")
parser.add_argument("--eval-every", type=int, default=2)
parser.add_argument("--updates", type=int, default=5)
args = parser.parse_args(["--half"])
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu") if args.half else None
step = 0
while True:
    last_step = step == args.updates
    if args.eval_every > 0 and (last_step or step % args.eval_every == 0):
        with torch.no_grad():
            print(step, model(torch.ones(1, 4)).item())
    if last_step:
        break
    x = torch.randn(8, 4)
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    if scaler is not None:
        scaler.scale(loss).backward()  # <- TL106
    else:
        loss.backward()
        optimizer.step()
    optimizer.zero_grad()
    step += 1
