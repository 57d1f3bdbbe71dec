import torch
from lightning.fabric import Fabric
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(12, 4)

    def forward(self, x):
        return torch.softmax(self.body(x), dim=-1)


fabric = Fabric()
optimizer_of = torch.optim.Adam
net = Net()
optimizer = optimizer_of(net.parameters())
net, optimizer = fabric.setup(net, optimizer)
data = torch.utils.data.TensorDataset(torch.randn(320, 12), torch.randint(0, 4, (320,)))
loader = fabric.setup_dataloaders(torch.utils.data.DataLoader(data, batch_size=8, shuffle=True))
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(x), y)  # <- TL401
    fabric.backward(loss)
    optimizer.step()
