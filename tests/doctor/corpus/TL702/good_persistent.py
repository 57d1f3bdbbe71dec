"""Workers that live on through the epochs are seeded once."""
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Noisy(Dataset):
    def __init__(self, x):
        self.x = x

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i] + np.random.normal(0, 0.1, 3).astype(np.float32), self.x[i].sum()


def init(worker_id):
    np.random.seed(100 + worker_id)


def main():
    x = np.random.rand(32, 3).astype(np.float32)
    loader = DataLoader(
        Noisy(x), batch_size=8, shuffle=True, num_workers=2, worker_init_fn=init,
        persistent_workers=True,
    )
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for a, b in loader:
            optimizer.zero_grad()
            loss = (model(a).squeeze(1) - b).pow(2).mean()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
