"""torch gives the global numpy generator a seed of its own in each worker."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class NoisyPoints(Dataset):
    def __init__(self, n):
        self.x = np.linspace(-1, 1, n, dtype=np.float32)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        noise = np.random.normal(scale=0.05)
        x = self.x[index]
        return torch.tensor([x]), torch.tensor([3 * x + noise], dtype=torch.float32)


def main():
    np.random.seed(0)
    torch.manual_seed(0)
    loader = DataLoader(NoisyPoints(64), batch_size=16, shuffle=True, num_workers=2)
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = nn.MSELoss()
    for epoch in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
