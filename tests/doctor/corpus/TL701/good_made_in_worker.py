import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Shifted(Dataset):
    def __init__(self, data):
        self.data = data
        self.rng = None

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        if self.rng is None:
            self.rng = np.random.default_rng(torch.initial_seed() % 2**32)
        x = self.data[i]
        return torch.roll(x, int(self.rng.integers(0, 3))), x.mean()


if __name__ == "__main__":
    loader = DataLoader(Shifted(torch.rand(32, 6)), batch_size=8, shuffle=True, num_workers=2)
    model = nn.Linear(6, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x)[:, 0], y).backward()
            optimizer.step()
