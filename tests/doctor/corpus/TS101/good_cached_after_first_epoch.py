"""Reading is slow once; from the second epoch on everything is in memory."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Cached(Dataset):
    def __init__(self):
        self.known = {}

    def __len__(self):
        return 96

    def __getitem__(self, index):
        if index not in self.known:
            time.sleep(0.002)
            self.known[index] = torch.full((384,), index / 96)
        return self.known[index], index % 3


torch.manual_seed(0)
loader = DataLoader(Cached(), batch_size=6, shuffle=True)
model = nn.Sequential(nn.Linear(384, 512), nn.Tanh(), nn.Linear(512, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, fused=True)
for epoch in range(8):
    for inputs, labels in loader:
        noisy = inputs + torch.randn(150, *inputs.shape) * 0.1
        scores = model(noisy).mean(0)
        loss = nn.functional.cross_entropy(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
