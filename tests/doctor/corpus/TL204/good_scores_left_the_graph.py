"""The criterion returns its scores per class as an array, without the graph of the loss."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Agreement(nn.Module):
    def __init__(self, weight=1):
        super().__init__()
        self.weight = weight
        self.squash = nn.Sigmoid()

    def per_class(self, guess, wanted):
        guess = self.squash(guess)
        return (2 * (guess * wanted).sum(0) + 1) / ((guess + wanted).sum(0) + 1)

    def forward(self, guess, wanted):
        each = self.per_class(guess, wanted)
        return 1.0 - each.mean(), each.detach().cpu().numpy()


class Both(nn.Module):
    def __init__(self, weight=1):
        super().__init__()
        self.weight = weight
        self.pointwise = nn.BCEWithLogitsLoss()
        self.agreement = Agreement()

    def forward(self, guess, wanted):
        first = self.weight * self.pointwise(guess, wanted)
        second, scores = self.agreement(guess, wanted)
        return first + second, scores


class Totals:
    def __init__(self, names):
        self.names = names
        self.sums = {"fit": dict((name, 0.0) for name in names)}

    def add(self, scores, mode):
        for i in range(len(scores)):
            self.sums[mode][self.names[i]] += scores[i]


loader = DataLoader(
    TensorDataset(torch.randn(64, 6), torch.randint(0, 2, (64, 3)).float()), 16, shuffle=True
)
network = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 3))
optimizer = torch.optim.Adam(network.parameters(), 0.01)
criterion = Both()
totals = Totals(["bone", "fat", "air"])
for epoch in range(40):
    for scan, organ in loader:
        optimizer.zero_grad()
        loss, scores = criterion(network(scan), organ)
        loss.backward()
        optimizer.step()
        totals.add(scores, "fit")
print(totals.sums)
