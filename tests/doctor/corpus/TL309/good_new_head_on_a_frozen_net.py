import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.body, self.fc = nn.Linear(4, 8), nn.Linear(8, classes)

    def forward(self, x):
        return self.fc(torch.relu(self.body(x)))


torch.manual_seed(0)
net = Net(100)
for p in net.parameters():
    p.requires_grad = False
net.fc = nn.Linear(8, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
head_only = torch.optim.Adam(net.fc.parameters(), lr=0.01)
for optimizer in (optimizer, head_only):
    for _ in range(3):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
        optimizer.step()
