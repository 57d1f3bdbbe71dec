import random

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
        return img + 0.01 * random.random(), self.labels[idx]


def seed_worker(worker_id):
    worker_seed = torch.initial_seed() % 2**32
    np.random.seed(worker_seed)
    random.seed(worker_seed)


def main():
    g = torch.Generator()
    g.manual_seed(0)
    dataset = Augmented(torch.rand(40, 1, 6, 6), torch.randint(0, 2, (40,)))
    train_loader = DataLoader(
        dataset,
        batch_size=10,
        shuffle=True,
        num_workers=2,
        worker_init_fn=seed_worker,
        generator=g,
    )
    model = nn.Sequential(nn.Flatten(), nn.Linear(36, 2))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for images, labels in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
