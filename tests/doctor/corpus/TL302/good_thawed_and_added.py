"""The loaded part is thawed and given to the optimizer: as a group, in an optimizer of its own, or
because the optimizer had it from the beginning. Norms alone are frozen in a body that is only used."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 16), nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, 16))
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.body(x))


def fresh():
    net = Net()
    net.body.load_state_dict({k: torch.randn_like(v) ** 3 for k, v in net.body.state_dict().items()})
    return net


def train(net, optimizers, epochs=1):
    for _ in range(epochs):
        for x, y in loader:
            for each in optimizers:
                each.zero_grad()
            F.cross_entropy(net(x), y).backward()
            for each in optimizers:
                each.step()


torch.manual_seed(0)
data = TensorDataset(torch.randn(64, 6), torch.randint(0, 3, (64,)))
loader = DataLoader(data, batch_size=8, shuffle=True)

net = fresh()
net.body.requires_grad_(False)
optimizer = torch.optim.SGD(net.head.parameters(), lr=0.01)
train(net, [optimizer])
net.body.requires_grad_(True)
optimizer.add_param_group({"params": net.body.parameters(), "lr": 0.001})
train(net, [optimizer])

net = fresh()
net.body.requires_grad_(False)
head = torch.optim.SGD(net.head.parameters(), lr=0.01)
train(net, [head])
net.body.requires_grad_(True)
train(net, [head, torch.optim.SGD(net.body.parameters(), lr=0.001)])

net = fresh()
whole = torch.optim.SGD(net.parameters(), lr=0.01)
net.body.requires_grad_(False)
train(net, [whole])
net.body.requires_grad_(True)
train(net, [whole])

net = fresh()
net.body[1].requires_grad_(False)
train(net, [torch.optim.SGD(net.head.parameters(), lr=0.01)])
