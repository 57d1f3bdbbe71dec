import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.head = nn.Linear(6, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.encoder.forward(x))


torch.manual_seed(1)
norms = []
net = Net()
net.head.register_forward_hook(lambda _, args, out: norms.append(out.norm().item()))
early = net.encoder.register_forward_hook(lambda _, args, out: print(out.shape))
early.remove()
optimizer = torch.optim.Adam(net.parameters())
for _ in range(6):
    x = torch.randn(10, 6)
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), (x[:, 0] > 0).long()).backward()
    optimizer.step()
