import torch
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, Dataset


class Recordings(Dataset):
    """Those of one kind of bird, or of one place with all its birds."""

    def __init__(self, kind, count):
        self.kind = kind
        self.tones = torch.randn(count, 8)
        self.tones[:, kind] += 2

    def __len__(self):
        return len(self.tones)

    def __getitem__(self, number):
        return self.tones[number], torch.tensor(self.kind)


class Place(Recordings):
    def __getitem__(self, number):
        return self.tones[number], self.tones[number, :5].argmax(), self.kind


def train(loader, model, optimizer):
    for tones, wanted, *_ in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(tones), wanted).backward()
        optimizer.step()


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 5))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
kinds = ConcatDataset([Recordings(number, 40) for number in range(5)])
places = ConcatDataset([Place(number, 40) for number in range(5)])
shuffled = DataLoader(kinds, batch_size=10, shuffle=True)
in_order = DataLoader(places, batch_size=10)
for epoch in range(3):
    train(shuffled, model, optimizer)
    train(in_order, model, optimizer)
with torch.no_grad():
    for tones, wanted in DataLoader(kinds, batch_size=10):
        print((model(tones).argmax(1) == wanted).float().mean().item())
