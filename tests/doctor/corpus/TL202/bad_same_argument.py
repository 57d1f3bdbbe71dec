"""An argument that is the same in both passes says nothing about the mode."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.drop = nn.Linear(4, 2), nn.Dropout(0.5)

    def forward(self, x, verbose=False):
        if verbose:
            print(x.shape)
        return self.fc(self.drop(x))


data = TensorDataset(torch.randn(48, 4), torch.randint(0, 2, (48,)))
train_loader, val_loader = DataLoader(data, 8, shuffle=True), DataLoader(data, 8)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x, verbose=False), y).backward()
        optimizer.step()
    correct = 0
    with torch.no_grad():
        for x, y in val_loader:
            correct += (net(x, verbose=False).argmax(1) == y).sum().item()  # <- TL202
    print(correct)
