"""The transform's numbers were drawn when it was made: each sample is always changed in one way."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split


class Project:
    def __init__(self, width, to):
        self.matrix = torch.randn(width, to) / width**0.5

    def __call__(self, row):
        return row @ self.matrix


class Rows(Dataset):
    def __init__(self, count, transform):
        self.rows = torch.randn(count, 30)
        self.answers = self.rows[:, :4].sum(1, keepdim=True)
        self.transform = transform

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.transform(self.rows[i]), self.answers[i]


torch.manual_seed(0)
learn, check = random_split(Rows(150, Project(30, 12)), [120, 30])
loader = DataLoader(learn, batch_size=20, shuffle=True)
net = nn.Sequential(nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(3):
    net.train()
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(net(x), y).backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        for x, y in DataLoader(check, batch_size=30):
            print(epoch, nn.functional.mse_loss(net(x), y).item())
