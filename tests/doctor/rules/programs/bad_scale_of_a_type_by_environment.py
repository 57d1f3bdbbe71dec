# The environment may ask for float16, and then the scale never adapts.
import os

import torch
from torch import nn

TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}


def number_type():
    wanted = os.environ.get("NUMBERS")
    if wanted is not None:
        return TYPES[wanted]
    return torch.float32


dtype = number_type()
scaler = torch.amp.GradScaler() if dtype == torch.float16 else None
net = nn.Linear(4, 2).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for rows in torch.randn(20, 8, 4).cuda():
    with torch.autocast("cuda", dtype=dtype):
        loss = nn.functional.cross_entropy(net(rows), (rows[:, 0] > 0).long())
    optimizer.zero_grad()
    if scaler is not None:
        scaler.scale(loss).backward()
        scaler.step(optimizer)  # <- TL502
    else:
        loss.backward()
        optimizer.step()
