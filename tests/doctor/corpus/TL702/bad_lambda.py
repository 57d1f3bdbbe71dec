import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SEED = 7


class Mixed(Dataset):
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        other = np.random.randint(len(self.x))
        weight = np.random.beta(0.4, 0.4)
        return (weight * self.x[i] + (1 - weight) * self.x[other]).float(), self.y[i]


def main():
    dataset = Mixed(torch.randn(48, 5), torch.randint(0, 3, (48,)))
    loader = DataLoader(
        dataset,
        batch_size=16,
        shuffle=True,
        num_workers=2,
        worker_init_fn=lambda worker: np.random.seed(SEED + worker),  # <- TL702
    )
    model = torch.nn.Linear(5, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(2):
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
