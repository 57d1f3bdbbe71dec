import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class NoisyPoints(Dataset):
    """Points on a line, with fresh noise each time they are read."""

    def __init__(self, n, seed=0):
        self.x = np.linspace(-1, 1, n, dtype=np.float32)
        self.rng = np.random.default_rng(seed)  # <- TL701

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        noise = self.rng.normal(scale=0.05)
        x = self.x[index]
        return torch.tensor([x]), torch.tensor([3 * x + noise], dtype=torch.float32)


def main():
    torch.manual_seed(0)
    train_set = NoisyPoints(64)
    loader = DataLoader(train_set, batch_size=16, shuffle=True, num_workers=2)
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = nn.MSELoss()

    for epoch in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
