# On an older card it trains in float16, and there nothing computes gradients.
import torch
from torch import nn


def best_type():
    if torch.cuda.get_device_capability() >= (8, 0):
        return torch.bfloat16, "new enough"
    if torch.cuda.get_device_capability() >= (7, 0):
        return torch.float16, "only half"
    return torch.float32, "old"


chosen, why = best_type()
print(why)
net = nn.Linear(4, 2).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler() if chosen == torch.float16 else None
for rows in torch.randn(20, 8, 4).cuda():
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=chosen):
        loss = nn.functional.cross_entropy(net(rows), (rows[:, 0] > 0).long())
    if scaler is None:
        loss.backward()
        optimizer.step()
    else:
        scaler.step(optimizer)  # <- TL108
        scaler.update()
