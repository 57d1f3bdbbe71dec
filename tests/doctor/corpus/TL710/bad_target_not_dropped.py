import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Prices(Dataset):
    """The last column is the price, and was to be dropped from the features."""

    def __init__(self, n):
        table = torch.randn(n, 5)
        table[:, 4] += table[:, 0] * 2
        self.features, self.prices = table, table[:, 4:]

    def __len__(self):
        return len(self.features)

    def __getitem__(self, i):
        return self.features[i], self.prices[i]


def main():
    torch.manual_seed(3)
    data = Prices(200)
    loader = DataLoader(data, batch_size=20, shuffle=True)  # <- TL710
    model = nn.Linear(5, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    criterion = nn.MSELoss()
    for epoch in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()


main()
