import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset, random_split


class Normalize:
    def __init__(self, mean, std):
        self.mean, self.std = mean, std

    def __call__(self, x):
        return (x - self.mean) / self.std


class Images(Dataset):
    def __init__(self, n, transform=None):
        self.images = torch.rand(n, 1, 6, 6)
        self.labels = torch.randint(0, 2, (n,))
        self.transform = transform

    def __len__(self):
        return len(self.images)

    def __getitem__(self, idx):
        image = self.images[idx]
        if self.transform:
            image = self.transform(image)
        return image, self.labels[idx]


def main():
    dataset = Images(60, transform=Normalize(0.5, 0.29))
    train_set, val_set = random_split(dataset, [40, 20], generator=torch.Generator().manual_seed(0))
    train_loader = DataLoader(train_set, batch_size=10, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=10)
    model = nn.Sequential(nn.Flatten(), nn.Linear(36, 2))
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(2):
        model.train()
        for x, y in train_loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        right = 0
        with torch.no_grad():
            for x, y in val_loader:
                right += (model(x).argmax(1) == y).sum().item()
        print(right / len(val_set))


if __name__ == "__main__":
    main()
