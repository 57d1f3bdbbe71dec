import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x):
        x = nn.ReLU()(self.a(x))
        x = nn.LayerNorm(8, elementwise_affine=False)(x)
        return self.b(nn.Flatten()(x))


torch.manual_seed(0)
net = Net()
optimizer = torch.optim.Adam(net.parameters())
for _ in range(5):
    optimizer.zero_grad()
    nn.CrossEntropyLoss()(net(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
    optimizer.step()
