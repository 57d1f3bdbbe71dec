"""A stack of losses out of one forward, with a backward each."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
opt = torch.optim.SGD(model.parameters(), lr=0.1)


def target():
    return torch.randn(8)


for x in torch.randn(8, 8, 4):
    opt.zero_grad()
    out = model(x)
    for column in range(3):
        y = target()
        nn.functional.mse_loss(out[:, column], y).backward(retain_graph=True)
    opt.step()
