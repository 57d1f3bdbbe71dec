import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Leaves:
    def __init__(self):
        self.centres = torch.randn(6, 9)

    def make(self, n):
        kinds = torch.randint(0, 6, (n,))
        return TensorDataset(self.centres[kinds] + 1.5 * torch.randn(n, 9), kinds)


def accuracy(logits, y):
    return (logits.argmax(-1) == y).float().mean().item()


class Runner:
    def __init__(self, model, train, val):
        self.model, self.train_loader, self.val_loader = model, train, val
        self.opt = torch.optim.SGD(model.parameters(), lr=0.1)

    def fit(self, epochs):
        for epoch in range(epochs):
            for x, y in self.train_loader:
                self.opt.zero_grad()
                nn.functional.cross_entropy(self.model(x), y).backward()
                self.opt.step()
            print(epoch, self.evaluate())

    def evaluate(self):
        score = 0.0
        with torch.no_grad():
            for x, y in self.val_loader:
                score += accuracy(self.model(x), y)
        return score / len(self.val_loader)  # <- TL709


leaves = Leaves()
train = DataLoader(leaves.make(64), batch_size=16, shuffle=True)
Runner(nn.Linear(9, 6), train, DataLoader(leaves.make(40), batch_size=16)).fit(2)
