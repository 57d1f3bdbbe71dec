import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--nominal", type=int, default=64)
parser.add_argument("--clip", action="store_true")
args = parser.parse_args([])
torch.manual_seed(0)
batches = [torch.randn(16, 4) for _ in range(8)]
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2)  # <- TL606
accumulate = max(args.nominal // 16, 1)
last_step = -1
for epoch in range(4):
    optimizer.zero_grad()
    for i, x in enumerate(batches):
        seen = i + len(batches) * epoch
        nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long()).div(accumulate).backward()
        if seen - last_step >= accumulate:
            if args.clip:
                nn.utils.clip_grad_norm_(model.parameters(), 10.0)
            optimizer.step()
            optimizer.zero_grad()
            last_step = seen
    print(epoch, [group["lr"] for group in optimizer.param_groups])
