"""Each task of an update has its own batch and its own head: the losses are a sum on purpose."""
import torch
from torch import nn

torch.manual_seed(0)
body = nn.Linear(6, 8)
heads = nn.ModuleList([nn.Linear(8, 2), nn.Linear(8, 3)])
opt = torch.optim.SGD([*body.parameters(), *heads.parameters()], lr=0.05)


def get_batch(task):
    x = torch.randn(8, 6)
    return x, x[:, : task + 2].argmax(1)


for step in range(8):
    opt.zero_grad()
    for task in range(len(heads)):
        x, y = get_batch(task)
        loss = nn.functional.cross_entropy(heads[task](body(x)), y)
        loss.backward()
    opt.step()
print(loss.item())
