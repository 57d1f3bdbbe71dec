import torch
from torch import nn


class LIFNode(nn.Module):
    """A spiking neuron: its potential lives on from call to call, until it is reset."""

    def __init__(self, tau=2.0):
        super().__init__()
        self.tau = tau
        self.v = 0.0

    def forward(self, x):
        self.v = self.v + (x - self.v) / self.tau
        return self.v


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 3)
        self.node = LIFNode()

    def forward(self, x):
        for _ in range(4):
            out = self.node(self.fc(x))
        return out


def reset_net(net):
    for module in net.modules():
        if hasattr(module, "v"):
            setattr(module, "v", 0.0)


torch.manual_seed(0)
net = Net()
optimizer = torch.optim.Adam(net.parameters())
data = [(torch.randn(8, 6), torch.randint(0, 3, (8,))) for _ in range(6)]
for epoch in range(2):
    for frame, label in data:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(frame), label)
        loss.backward()
        optimizer.step()
        reset_net(net)
    print(epoch, loss.item())
