"""Two heads are averaged, and then the four micro-batches of an update; a third loop weighs its two
losses, which average nothing."""

import torch
from torch import nn

WINDOW = 4


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(5, 16)
        self.near, self.far = nn.Linear(16, 2), nn.Linear(16, 2)

    def forward(self, x):
        seen = torch.relu(self.body(x))
        return self.near(seen), self.far(seen)


def run(net, loader, cost, epochs=2):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02)
    for _ in range(epochs):
        for step, (inputs, near, far) in enumerate(loader):
            one, two = net(inputs)
            cost(nn.functional.cross_entropy(one, near), nn.functional.cross_entropy(two, far)).backward()
            if (step + 1) % WINDOW == 0:
                optimizer.step()
                optimizer.zero_grad()


def averaged(one, two):
    return (one + two) / 2 / WINDOW


def weighed(one, two):
    return (one + two) * 0.25


torch.manual_seed(5)
x = torch.randn(128, 5)
data = torch.utils.data.TensorDataset(x, (x[:, 0] > 0).long(), (x[:, 1] > 0).long())
loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
run(Heads(), loader, averaged)
run(Heads(), loader, weighed)
