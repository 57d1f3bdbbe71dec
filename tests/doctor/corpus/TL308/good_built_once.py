import torch
from torch import nn


class Lazy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 6), None

    def forward(self, x):
        h = torch.relu(self.body(x))
        if self.head is None:
            self.head = nn.Linear(h.shape[1], 2)
        return self.head(h)


torch.manual_seed(0)
net = Lazy()
net(torch.randn(1, 4))
optimizer = torch.optim.Adam(net.parameters())
for _ in range(5):
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
    optimizer.step()
