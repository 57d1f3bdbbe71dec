"""The micro-batches come from a stream that the function is given; each adds its whole mean."""
import torch
from torch import nn


class Stream:
    def __init__(self, size):
        self.size = size
        self.weights = torch.randn(5)

    def next_batch(self):
        x = torch.randn(self.size, 5)
        return x, (x @ self.weights)[:, None]


def backward_of(net, stream, count):
    for _ in range(count):
        x, y = stream.next_batch()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()  # <- TL505


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
stream = Stream(8)
for update in range(30):
    optimizer.zero_grad()
    backward_of(net, stream, 4)
    optimizer.step()
