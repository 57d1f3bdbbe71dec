"""A map of what each prediction looks at: gradients in eval mode, and no step is meant."""
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.last = nn.Linear(8, 3)
        self.kept = None

    def forward(self, x):
        hidden = torch.relu(self.first(x))
        if not self.training and hidden.requires_grad:
            hidden.register_hook(self.keep)
        return self.last(hidden)

    def keep(self, gradient):
        self.kept = gradient

    def get_map(self):
        return self.kept.abs().mean(0).tolist()


def train(net, loader, optimizer):
    net.train()
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()


def explain(net, loader):
    net.eval()
    maps = []
    for x, _ in loader:
        scores = net(x)
        net.zero_grad()
        scores[:, 0].sum().backward()
        maps.append(net.get_map())
    return maps


if __name__ == "__main__":
    import sys

    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = [(torch.randn(8, 4), torch.randint(0, 3, (8,))) for _ in range(4)]
    if "--evaluate" not in sys.argv:
        train(net, loader, optimizer)
    print(explain(net, loader))
