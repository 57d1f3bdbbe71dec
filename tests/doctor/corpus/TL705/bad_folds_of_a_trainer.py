"""The network is made where the trainer is, not where a fold begins."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, SubsetRandomSampler, TensorDataset


class CrossValidation:
    def __init__(self, data, folds=3):
        self.data, self.folds = data, folds
        self.net = nn.Linear(6, 3)

    def loaders(self, number):
        indices = list(range(len(self.data)))
        test = indices[number :: self.folds]
        train = [i for i in indices if i % self.folds != number]
        train = DataLoader(self.data, batch_size=10, sampler=SubsetRandomSampler(train))
        test = DataLoader(self.data, batch_size=10, sampler=SubsetRandomSampler(test))  # <- TL705
        return train, test

    def fit(self, loader):
        optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1, momentum=0.9)
        for x, y in loader:
            optimizer.zero_grad(set_to_none=True)
            loss = nn.functional.cross_entropy(self.net(x), y)
            loss.backward()
            optimizer.step()

    @torch.no_grad()
    def score(self, loader):
        return sum((self.net(x).argmax(1) == y).sum().item() for x, y in loader)

    def run(self):
        right = 0
        for number in range(self.folds):
            train, test = self.loaders(number)
            self.fit(train)
            right += self.score(test)
        return right / len(self.data)


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(90, 6)
    print(CrossValidation(TensorDataset(x, x[:, :3].argmax(1))).run())
