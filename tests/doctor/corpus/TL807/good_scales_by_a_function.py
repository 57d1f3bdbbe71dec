"""A frozen network and the scales that are learnt for it: two files, and each fits its part."""

import tempfile
from pathlib import Path

import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.scale = nn.Parameter(torch.ones(inner.out_features))

    def forward(self, x):
        return self.scale * self.inner(x)


def network():
    return nn.Sequential(nn.Linear(5, 12), nn.GELU(), nn.Linear(12, 2))


def scaled(net):
    for weight in net.parameters():
        weight.requires_grad_(False)
    return nn.Sequential(*(Scaled(x) if isinstance(x, nn.Linear) else x for x in net))


def scales_of(net):
    return {name: entry for name, entry in net.state_dict().items() if name.endswith("scale")}


def learn(net):
    trained = [weight for weight in net.parameters() if weight.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=0.05)
    for _ in range(5):
        x = torch.randn(16, 5)
        optimizer.zero_grad()
        nn.functional.mse_loss(net(x), x[:, :2]).backward()
        optimizer.step()
    return net


torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    whole, part = Path(folder) / "network.pt", Path(folder) / "scales.pt"
    net = learn(network())
    torch.save(net.state_dict(), whole)
    torch.save(scales_of(learn(scaled(net))), part)
    again = network()
    again.load_state_dict(torch.load(whole, weights_only=True))
    served = scaled(again)
    served.load_state_dict(torch.load(part, weights_only=True), strict=False)
    print(served(torch.ones(1, 5)).tolist())
