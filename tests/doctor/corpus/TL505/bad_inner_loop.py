"""An endless stream; micro-batches in a loop of their own, and the step after it."""
import torch
from torch import nn


def stream():
    while True:
        x = torch.randn(8, 4)
        yield x, x.sum(1, keepdim=True)


torch.manual_seed(0)
accum, data = 4, stream()
model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
for it in range(8):
    for micro in range(accum):
        x, y = next(data)
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()  # <- TL505
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    opt.zero_grad(set_to_none=True)
print(loss.item())
