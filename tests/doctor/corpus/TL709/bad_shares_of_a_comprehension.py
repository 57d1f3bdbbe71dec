import torch
from torch import nn
from torch.utils.data import DataLoader, random_split


class Pairs(torch.utils.data.Dataset):
    def __init__(self):
        self.pairs = [(torch.randn(3), torch.randn(1)) for _ in range(250)]

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        return self.pairs[i]


train, val = random_split(Pairs(), [0.8, 0.2])
train_loader, val_loader = DataLoader(train, 20, shuffle=True), DataLoader(val, 20)
model, criterion = nn.Linear(3, 1), nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in train_loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
    running = 0.0
    with torch.no_grad():
        for x, y in val_loader:
            running += criterion(model(x), y).item()
    print(running / len(val_loader))  # <- TL709
