import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class HalfOfThem(Dataset):
    """Draws in the constructor only: the workers get the finished choice."""

    def __init__(self, features, labels, seed):
        self.rng = np.random.RandomState(seed)
        chosen = self.rng.permutation(len(features))[: len(features) // 2]
        self.features = features[chosen]
        self.labels = labels[chosen]

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.features[i], self.labels[i]


class PerSample(Dataset):
    """A generator for each sample: the same in whichever worker."""

    def __init__(self, base, seed):
        self.base, self.seed = base, seed

    def __len__(self):
        return len(self.base)

    def __getitem__(self, i):
        rng = np.random.default_rng([self.seed, i])
        x, y = self.base[i]
        return x + rng.normal(0, 0.1, x.shape).astype(np.float32), y


def main():
    x = np.random.rand(80, 5).astype(np.float32)
    y = (x[:, 0] > 0.5).astype(np.int64)
    loader = DataLoader(PerSample(HalfOfThem(x, y, 0), 1), 10, True, num_workers=2)
    model = nn.Linear(5, 2)
    opt = torch.optim.SGD(model.parameters(), lr=0.5)
    for epoch in range(2):
        for xb, yb in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            opt.step()


if __name__ == "__main__":
    main()
