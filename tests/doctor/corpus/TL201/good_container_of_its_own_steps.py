"""Steps without a mode, in a container that takes their list and an option."""
import torch
from torch import nn


class Chain(nn.Sequential):
    def __init__(self, *steps, **options):
        self.twice = options.pop("twice", False)
        super().__init__(*steps, **options)

    def forward(self, x):
        for step in self:
            x = step(step(x)) if self.twice else step(x)
        return x


class Step(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(width))
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return torch.tanh(x * self.scale + self.shift)


class Net(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.chain = Chain(*[Step(width) for _ in range(depth)], twice=True)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.chain(x))


def samples(net, count):
    net.eval()
    with torch.no_grad():
        return [net(torch.randn(4, 6)).mean().item() for _ in range(count)]


def fit(depth, batches):
    net = Net(6, depth)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for epoch in range(2):
        net.train()
        for i, (x, y) in enumerate(batches):
            loss = nn.functional.mse_loss(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if i % 4 == 0:
                print(epoch, i, samples(net, 3))


if __name__ == "__main__":
    torch.manual_seed(0)
    fit(3, [(torch.randn(8, 6), torch.randn(8, 1)) for _ in range(12)])
