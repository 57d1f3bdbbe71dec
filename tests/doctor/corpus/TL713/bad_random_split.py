import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset, random_split


class RandomFlip:
    def __init__(self, p=0.5):
        self.p = p

    def __call__(self, img):
        if torch.rand(1).item() < self.p:
            return img.flip(-1)
        return img


class Images(Dataset):
    def __init__(self, n, transform=None):
        self.images = torch.rand(n, 1, 8, 8)
        self.labels = torch.randint(0, 3, (n,))
        self.transform = transform

    def __len__(self):
        return len(self.images)

    def __getitem__(self, idx):
        image = self.images[idx]
        if self.transform:
            image = self.transform(image)
        return image, self.labels[idx]


def main():
    torch.manual_seed(0)
    dataset = Images(100, transform=RandomFlip())
    train_set, val_set = random_split(dataset, [80, 20])  # <- TL713
    train_loader = DataLoader(train_set, batch_size=16, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=20)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(2):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        model.eval()
        correct = 0
        with torch.no_grad():
            for x, y in val_loader:
                correct += (model(x).argmax(1) == y).sum().item()
        print(epoch, correct / len(val_set))


if __name__ == "__main__":
    main()
