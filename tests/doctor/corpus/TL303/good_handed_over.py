# Layers in a plain list, whose parameters and device are looked after by hand.
import itertools

import torch
from torch import nn


class Stages(nn.Module):
    def __init__(self, device, n=3):
        super().__init__()
        self.stages = [nn.Linear(4, 4).to(device) for _ in range(n)]
        self.out = nn.Linear(4, 1).to(device)

    def forward(self, x):
        for stage in self.stages:
            x = torch.tanh(stage(x))
        return self.out(x)


def main():
    torch.manual_seed(0)
    model = Stages(torch.device("cpu"))
    parameters = list(model.out.parameters())
    for stage in model.stages:
        parameters += list(stage.parameters())
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    x = torch.randn(40, 4)
    y = x.prod(1, keepdim=True)
    for step in range(10):
        optimizer.zero_grad()
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        optimizer.step()
    print(loss.item())
    extra = Stages(torch.device("cpu"))
    every = itertools.chain(extra.out.parameters(), *(s.parameters() for s in extra.stages))
    adam = torch.optim.Adam(every, lr=0.01)
    for step in range(10):
        adam.zero_grad()
        (extra(x) - y).abs().mean().backward()
        adam.step()


if __name__ == "__main__":
    main()
