"""Images are read one after the other while the model has nothing to do."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __init__(self, size):
        self.labels = torch.arange(size) % 4

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        time.sleep(0.002)  # a slow disk
        return torch.randn(3, 8, 8), self.labels[index]


torch.manual_seed(0)
loader = DataLoader(Images(600), batch_size=8, shuffle=True)  # <- TS101
model = nn.Sequential(nn.Flatten(), nn.Linear(192, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
criterion = nn.CrossEntropyLoss()
for images, labels in loader:
    optimizer.zero_grad()
    loss = criterion(model(images), labels)
    loss.backward()
    optimizer.step()
print(loss.item())
