"""Forwards without backward that are no validation: a shape test, and warming up batch norm."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout2d(0.1), nn.Flatten()
        )
        with torch.no_grad():
            size = self.features(torch.zeros(2, 1, 8, 8)).shape[1]
        self.head = nn.Linear(size, 3)

    def forward(self, x):
        return self.head(self.features(x))


def collect_statistics(model, loader):
    model.train()
    with torch.no_grad():
        for images, _ in loader:
            model(images)


torch.manual_seed(0)
images, labels = torch.randn(96, 1, 8, 8), torch.randint(0, 3, (96,))
train_loader = DataLoader(TensorDataset(images[:64], labels[:64]), batch_size=16, shuffle=True)
test_loader = DataLoader(TensorDataset(images[64:], labels[64:]), batch_size=16)
net = Net()
print("output:", tuple(net(images[:2]).shape))
collect_statistics(net, train_loader)
optimizer = torch.optim.Adam(net.parameters())
for epoch in range(2):
    net.train()
    for x, y in train_loader:
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
net.eval()
with torch.no_grad():
    hits = sum((net(x).argmax(1) == y).sum().item() for x, y in test_loader)
print("accuracy:", hits / len(test_loader.dataset))
