"""What weighs the loss learns from an update of the net: the gradients of that update are parts of
the graph, and the second loss goes back through them after they are cleared."""

import warnings

import torch
from torch import nn

warnings.filterwarnings("ignore", "Using backward")
torch.manual_seed(4)


class Moved(nn.Module):
    """A net with the weights of a different one, one update later."""

    def __init__(self, weights):
        super().__init__()
        self.__dict__.update(weights)

    def forward(self, x):
        return x @ self.__dict__["weight"].T + self.__dict__["bias"]


net, weigher = nn.Linear(5, 2), nn.Sequential(nn.Linear(1, 4), nn.ReLU(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
weighing = torch.optim.Adam(weigher.parameters(), lr=1e-3)
for step in range(20):
    x, later = torch.randn(16, 5), torch.randn(16, 5)
    y, wanted = (x[:, 0] > 0).long(), (later[:, 0] > 0).long()
    each = nn.functional.cross_entropy(net(x), y, reduction="none")
    loss = (torch.sigmoid(weigher(each.detach()[:, None])).squeeze(1) * each).mean()
    optimizer.zero_grad()
    loss.backward(create_graph=True)
    moved = {name: p - 0.1 * p.grad for name, p in net.named_parameters()}
    second = nn.functional.cross_entropy(Moved(moved)(later), wanted)
    optimizer.step()
    weighing.zero_grad()
    second.backward()
    weighing.step()
print(second.item())
