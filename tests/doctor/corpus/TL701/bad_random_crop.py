import argparse
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils import data


class Crops(data.Dataset):
    def __init__(self, images, labels, size, seed):
        super().__init__()
        self.images, self.labels, self.size = images, labels, size
        self._random = random.Random(seed)  # <- TL701

    def _corner(self, extent):
        return self._random.randint(0, extent - self.size)

    def __getitem__(self, i):
        image = self.images[i]
        top, left = self._corner(image.shape[1]), self._corner(image.shape[2])
        return image[:, top : top + self.size, left : left + self.size], self.labels[i]

    def __len__(self):
        return len(self.images)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        return self.fc(F.relu(self.conv(x)).mean(dim=(2, 3)))


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main():
    args = parse_args()
    torch.manual_seed(args.seed)
    dataset = Crops(torch.rand(48, 1, 10, 10), torch.randint(0, 3, (48,)), 8, args.seed)
    loader = data.DataLoader(dataset, batch_size=12, shuffle=True, num_workers=args.workers)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters())
    for epoch in range(args.epochs):
        net.train()
        for images, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(net(images), labels).backward()
            optimizer.step()


if __name__ == "__main__":
    main()
