import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Augmented(Dataset):
    def __init__(self, images, labels):
        self.images = images
        self.labels = labels

    def __len__(self):
        return len(self.images)

    def __getitem__(self, idx):
        img = self.images[idx]
        if np.random.rand() < 0.5:
            img = torch.flip(img, dims=[-1])
        return img, self.labels[idx]


def worker_init_fn(worker_id):
    np.random.seed(42)  # <- TL702


def main():
    torch.manual_seed(42)
    dataset = Augmented(torch.rand(40, 1, 6, 6), torch.randint(0, 2, (40,)))
    train_loader = DataLoader(
        dataset, batch_size=10, shuffle=True, num_workers=2, worker_init_fn=worker_init_fn
    )
    model = nn.Sequential(nn.Flatten(), nn.Linear(36, 2))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        model.train()
        for images, labels in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
