"""The logarithm of a count of zero is the target."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Counts(Dataset):
    def __init__(self, n):
        self.features = torch.randn(n, 3)
        self.counts = torch.randint(1, 9, (n,)).float()
        self.counts[5] = 0

    def __len__(self):
        return len(self.counts)

    def __getitem__(self, index):
        return {"x": self.features[index], "y": -self.counts[index].log()}


def train(model, loader, epochs=1):
    criterion = nn.L1Loss()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(epochs):
        for batch in loader:
            prediction = model(batch["x"]).squeeze(1)
            loss = criterion(prediction, batch["y"])  # <- TL708
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    torch.manual_seed(0)
    train(nn.Linear(3, 1), DataLoader(Counts(48), batch_size=12, shuffle=True))
