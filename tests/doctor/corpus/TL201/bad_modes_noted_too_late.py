"""The modes are put back as they were noted: after `eval()`."""
import torch
from torch import nn


class Asleep:
    def __init__(self, net):
        self.net = net

    def __enter__(self):
        self.net.eval()
        self.before = [(part, part.training) for part in self.net.modules()]

    def __exit__(self, *reason):
        for part, mode in self.before:
            part.training = mode


def error(net, x, y):
    with Asleep(net), torch.no_grad():
        return (net(x) - y).abs().mean().item()


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
x, y = torch.randn(160, 5), torch.randn(160, 1)
for step in range(30):
    rows = torch.randint(0, 128, (16,))
    loss = nn.functional.mse_loss(net(x[rows]), y[rows])  # <- TL201
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        print(step, error(net, x[128:], y[128:]))
