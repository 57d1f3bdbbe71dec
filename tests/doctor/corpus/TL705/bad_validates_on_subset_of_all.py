"""The training loader goes through everything, the split is made beside it."""

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset, random_split


class Points(Dataset):
    def __init__(self, n):
        self.points = torch.randn(n, 3)
        self.labels = (self.points[:, :1] > 0).float()

    def __len__(self):
        return len(self.points)

    def __getitem__(self, index):
        return self.points[index], self.labels[index]


class Experiment:
    def __init__(self, data):
        _, val_set = random_split(data, [120, 30])
        self.train_loader = DataLoader(data, batch_size=15, shuffle=True)
        self.val_loader = DataLoader(val_set, batch_size=15)  # <- TL705
        self.model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
        self.optimizer = optim.Adam(self.model.parameters(), lr=1e-2)
        self.criterion = nn.BCEWithLogitsLoss()

    def train(self):
        self.model.train()
        for points, labels in self.train_loader:
            self.optimizer.zero_grad()
            self.criterion(self.model(points), labels).backward()
            self.optimizer.step()

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        losses = [self.criterion(self.model(a), b).item() * len(a) for a, b in self.val_loader]
        return sum(losses) / 30


if __name__ == "__main__":
    torch.manual_seed(0)
    experiment = Experiment(Points(150))
    for epoch in range(3):
        experiment.train()
        print(epoch, experiment.validate())
