import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, random_split


class Table(Dataset):
    """Rows of a table that was read into memory."""

    def __init__(self, rows):
        self.features = torch.randn(rows, 6)
        self.targets = self.features.sum(1, keepdim=True)

    def __len__(self):
        return len(self.features)

    def __getitem__(self, idx):
        return self.features[idx], self.targets[idx]


def fit():
    torch.manual_seed(1)
    train, val = random_split(Table(9600), [9000, 600])
    loader = DataLoader(train, 80, shuffle=True)  # <- TS108
    net = nn.Linear(6, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.05, fused=True)
    for x, y in loader:
        loss = F.mse_loss(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        for x, y in DataLoader(val, 600):
            print(loss.item(), F.mse_loss(net(x), y).item())


fit()
