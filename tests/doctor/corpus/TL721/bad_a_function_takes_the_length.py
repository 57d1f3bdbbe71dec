import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Ratings(Dataset):
    def __init__(self, count):
        drawn = torch.Generator().manual_seed(6)
        self.reader = torch.randint(30, (count,), generator=drawn)
        self.book = torch.randint(50, (count,), generator=drawn)
        self.stars = torch.rand(count, generator=drawn)

    def __len__(self):
        return len(self.stars)

    def __getitem__(self, i):
        return {"reader": self.reader[i], "book": self.book[i], "stars": self.stars[i]}


class Factors(nn.Module):
    def __init__(self):
        super().__init__()
        self.readers, self.books = nn.Embedding(30, 6), nn.Embedding(50, 6)

    def forward(self, reader, book):
        return (self.readers(reader) * self.books(book)).sum(-1)


def samples_in(batch):
    return len(batch)  # <- TL721


def epoch_of(model, loader, optimizer):
    total, count = 0.0, 0
    for batch in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(batch["reader"], batch["book"]), batch["stars"])
        loss.backward()
        optimizer.step()
        total += loss.item() * samples_in(batch)
        count += samples_in(batch)
    return total / count, count


torch.manual_seed(6)
model = Factors()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
loader = DataLoader(Ratings(640), batch_size=64, shuffle=True)
for epoch in range(3):
    print(epoch, *epoch_of(model, loader, optimizer))
