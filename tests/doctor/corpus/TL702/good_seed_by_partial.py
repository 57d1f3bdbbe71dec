import random
from functools import partial

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

NUM_WORKERS = 2


class Shifted(Dataset):
    """Signals that are shifted by a random number of steps."""

    def __init__(self, signals, classes):
        self.signals, self.classes = signals, classes

    def __len__(self):
        return len(self.signals)

    def __getitem__(self, index):
        return self.signals[index].roll(random.randrange(10)), self.classes[index]


def worker_init_fn(worker_id, rank, seed):
    # differs by epoch, too
    worker_seed = torch.initial_seed() % 2**32 + rank + seed
    random.seed(worker_seed)


def build_loader(data, seed):
    init_fn = partial(worker_init_fn, rank=0, seed=seed)
    return DataLoader(
        data, batch_size=8, shuffle=True, num_workers=NUM_WORKERS, worker_init_fn=init_fn
    )


if __name__ == "__main__":
    torch.manual_seed(3)
    loader = build_loader(Shifted(torch.randn(32, 20), torch.randint(0, 2, (32,))), seed=3)
    model = nn.Sequential(nn.Linear(20, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(2):
        for signals, classes in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(signals), classes).backward()
            optimizer.step()
