"""A table with years and incomes in it, as it came."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Incomes(Dataset):
    def __init__(self, n):
        years = 1950 + 50 * torch.rand(n, 1)
        incomes = 20_000 + 40_000 * torch.rand(n, 2)
        self.rows = torch.cat([years, incomes], dim=1)
        self.spent = (incomes.sum(dim=1, keepdim=True) > 80_000).float()

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index], self.spent[index]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 8)
        self.second = nn.Linear(8, 1)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


def main():
    torch.manual_seed(0)
    loader = DataLoader(Incomes(100), batch_size=20, shuffle=True)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(2):
        for rows, spent in loader:
            optimizer.zero_grad()
            prediction = net(rows)  # <- TL707
            criterion(prediction, spent).backward()
            optimizer.step()


if __name__ == "__main__":
    main()
