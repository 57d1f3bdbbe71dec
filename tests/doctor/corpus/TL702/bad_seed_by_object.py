import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class SeedWorkers:
    """Gives each worker a seed of its own."""

    def __init__(self, first):
        self.first = first

    def __call__(self, worker_id):
        np.random.seed(self.first + worker_id)  # <- TL702


class Jittered(Dataset):
    def __init__(self, rows, targets):
        self.rows, self.targets = rows, targets

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        noise = np.random.normal(0, 0.1, self.rows.shape[1])
        return self.rows[index] + torch.as_tensor(noise).float(), self.targets[index]


def train(epochs=2, seed=11):
    torch.manual_seed(seed)
    rows = torch.randn(32, 5)
    loader = DataLoader(
        Jittered(rows, rows.sum(1, keepdim=True)),
        batch_size=8,
        shuffle=True,
        num_workers=2,
        worker_init_fn=SeedWorkers(seed),
    )
    model = nn.Linear(5, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        for inputs, targets in loader:
            loss = nn.functional.mse_loss(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    train()
