# The type is always bfloat16: what float16 would need does not matter.
import torch
from torch import nn


def number_type():
    return torch.bfloat16


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
        scaler.step(optimizer)
    else:
        loss.backward()
        optimizer.step()
