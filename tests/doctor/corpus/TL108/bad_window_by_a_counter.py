import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--every", type=int, default=4)
parser.add_argument("--clip", action="store_true")
args = parser.parse_args([])
torch.manual_seed(0)
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
last = -1
batches = [torch.randn(16, 4) for _ in range(8)]
for epoch in range(3):
    for i, x in enumerate(batches):
        loss = nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long()) / args.every
        seen = i + len(batches) * epoch
        if seen - last >= args.every:
            if args.clip:
                nn.utils.clip_grad_norm_(model.parameters(), 10.0)
            optimizer.step()  # <- TL108
            optimizer.zero_grad()
            last = seen
    print(epoch, loss.item())
