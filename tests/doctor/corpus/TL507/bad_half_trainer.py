"""Half of the memory, and half of the updates lost."""

import torch
from torch import nn


class Trainer:
    def __init__(self, net, lr):
        self.net = net.half()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=lr, momentum=0.9)

    def step(self, x, y):
        self.optimizer.zero_grad(set_to_none=True)
        error = (self.net(x.half()).float() - y).square().mean()
        error.backward()
        self.optimizer.step()  # <- TL507
        return error.item()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    trainer = Trainer(nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)), lr=1e-4)
    for step in range(20):
        x = torch.randn(32, 8)
        print(step, trainer.step(x, x.sum(dim=1, keepdim=True)))


if __name__ == "__main__":
    main()
