import torch
from torch import nn
from torch.nn.utils import prune


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(8, 16), nn.Linear(16, 2)
        prune.l1_unstructured(self.first, "weight", amount=0.5)

    def features(self, x):
        return self.first.forward(x).relu()  # <- TL205

    def forward(self, x):
        return self.last(self.features(x))


torch.manual_seed(0)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(8):
    x = torch.randn(16, 8)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(x), (x[:, 0] > 0).long())
    loss.backward(retain_graph=True)
    optimizer.step()
