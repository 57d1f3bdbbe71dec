"""The data set's transforms are a list: one scales by a drawn factor, and both parts have it."""

import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset


class Centre:
    def __call__(self, series):
        return series - series.mean()


class Louder:
    def __init__(self, most):
        self.most = most

    def __call__(self, series):
        return series * random.uniform(1 / self.most, self.most)


class Tones(Dataset):
    def __init__(self, count, transforms=()):
        self.transforms = list(transforms)
        self.notes = torch.randint(0, 3, (count,))
        steps = torch.linspace(0, 6, 20)
        self.series = torch.sin((1 + self.notes.unsqueeze(1)) * steps)

    def __len__(self):
        return len(self.notes)

    def __getitem__(self, index):
        series = self.series[index]
        for each in self.transforms:
            series = each(series)
        return series, self.notes[index]


def accuracy(model, loader):
    model.eval()
    with torch.no_grad():
        hits = sum(int((model(x).argmax(1) == y).sum()) for x, y in loader)
    model.train()
    return hits / len(loader.dataset)


torch.manual_seed(0)
random.seed(0)
tones = Tones(160, [Centre(), Louder(3.0)])
order = torch.randperm(len(tones)).tolist()
fit, held_out = Subset(tones, order[:120]), Subset(tones, order[120:])  # <- TL713
loader, check = DataLoader(fit, batch_size=24, shuffle=True), DataLoader(held_out, batch_size=40)
model = nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    print(epoch, accuracy(model, check))
