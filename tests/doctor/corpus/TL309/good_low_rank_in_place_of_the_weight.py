"""The weights are frozen by their names, and what is added to them at low rank learns."""
import torch
from torch import nn
from torch.nn.utils import parametrize


class LowRank(nn.Module):
    def __init__(self, rows, columns, rank):
        super().__init__()
        self.left = nn.Parameter(torch.zeros(rows, rank))
        self.right = nn.Parameter(torch.randn(rank, columns) * 0.1)

    def forward(self, weight):
        return weight + self.left @ self.right


def adapt(net, rank):
    for layer in net.modules():
        if isinstance(layer, nn.Linear):
            rows, columns = layer.weight.shape
            parametrize.register_parametrization(layer, "weight", LowRank(rows, columns, rank))
    for name, p in net.named_parameters():
        if "parametrizations" not in name:
            p.requires_grad = False
        elif name.endswith("original"):
            p.requires_grad = False
    return net


torch.manual_seed(0)
net = adapt(nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 2)), rank=2)
optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
for x in torch.randn(12, 10, 5):
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), (x.sum(1) > 0).long()).backward()
    optimizer.step()
