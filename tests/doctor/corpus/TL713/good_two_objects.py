import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset, Subset


class AddNoise:
    def __call__(self, x):
        return x + 0.1 * torch.randn_like(x)


class Table(Dataset):
    def __init__(self, x, y, transform=None):
        self.x, self.y, self.transform = x, y, transform

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        x = self.x[i]
        return (self.transform(x) if self.transform else x), self.y[i]


def main():
    x = torch.randn(100, 5)
    y = (x.sum(1) > 0).long()
    order = torch.randperm(len(x)).tolist()
    train_set = Subset(Table(x, y, AddNoise()), order[:80])
    val_set = Subset(Table(x, y), order[80:])
    train_loader = DataLoader(train_set, batch_size=20, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=20)
    model = nn.Linear(5, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        model.train()
        for a, b in train_loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(a), b).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            print(sum((model(a).argmax(1) == b).sum().item() for a, b in val_loader) / len(val_set))


if __name__ == "__main__":
    main()
