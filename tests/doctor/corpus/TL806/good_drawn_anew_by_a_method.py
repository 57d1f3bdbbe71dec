"""The weights are drawn anew after the seed, by a method of the model."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.out = nn.Linear(2, 8), nn.Linear(8, 2)

    def init_weights(self):
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)

    def forward(self, x):
        return self.out(torch.relu(self.hidden(x)))


net = Net()
torch.manual_seed(1)
net.init_weights()
loader = DataLoader(TensorDataset(torch.randn(24, 2), torch.randint(0, 2, (24,))), 4, shuffle=True)
opt = torch.optim.SGD(net.parameters(), 0.1)
for x, y in loader:
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
