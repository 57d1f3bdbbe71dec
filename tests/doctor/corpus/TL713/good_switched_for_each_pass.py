"""One data set object, whose transform is set before each pass that reads it."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split


class Images(Dataset):
    def __init__(self, count):
        self.images = torch.randn(count, 64)
        self.labels = torch.randint(0, 2, (count,))
        self.transform = None

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.transform(self.images[index]), self.labels[index]


def noisy(image):
    return image + 0.1 * torch.randn_like(image)


def plain(image):
    return image


torch.manual_seed(0)
train_set, val_set = random_split(Images(100), [80, 20])
train_loader = DataLoader(train_set, batch_size=20, shuffle=True)
val_loader = DataLoader(val_set, batch_size=20)
model = nn.Linear(64, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    train_set.dataset.transform = noisy
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    val_set.dataset.transform = plain
    model.eval()
    with torch.no_grad():
        hits = sum(int((model(x).argmax(1) == y).sum()) for x, y in val_loader)
    print(epoch, hits / len(val_set))
