import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Ratings(Dataset):
    def __init__(self, count):
        self.features, self.stars = torch.randn(count, 5), torch.rand(count)

    def __len__(self):
        return len(self.stars)

    def __getitem__(self, i):
        return {"features": self.features[i], "stars": self.stars[i]}


def samples_in(batch):
    return len(batch["stars"])


def keys_of(batch):
    return len(batch)


torch.manual_seed(6)
model = nn.Linear(5, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for epoch in range(3):
    total, count = 0.0, 0
    for batch in DataLoader(Ratings(640), batch_size=64, shuffle=True):
        if keys_of(batch) != 2:
            raise ValueError("each batch has features and stars")
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(batch["features"])[:, 0], batch["stars"])
        loss.backward()
        optimizer.step()
        total += loss.item() * samples_in(batch)
        count += samples_in(batch)
    print(epoch, total / count)
