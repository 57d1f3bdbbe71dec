import argparse

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--grad-accum", type=int, default=2)
parser.add_argument("--iters", type=int, default=12)
args = parser.parse_args()

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 10), nn.ReLU(), nn.Linear(10, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batches = [(torch.randn(4, 5), torch.randn(4, 1)) for _ in range(args.iters)]

for it, (x, y) in enumerate(batches):
    loss = F.mse_loss(model(x), y) / args.grad_accum
    loss.backward()
    if (it + 1) % args.grad_accum == 0:
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    optimizer.zero_grad()  # <- TL508
    if it % 4 == 0:
        print(it, loss.item())
