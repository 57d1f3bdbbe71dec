"""The transform belongs to a wrapper around the training part alone."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset, random_split


class Transformed(Dataset):
    def __init__(self, subset, transform):
        self.subset, self.transform = subset, transform

    def __len__(self):
        return len(self.subset)

    def __getitem__(self, i):
        x, y = self.subset[i]
        return self.transform(x), y


def jitter(x):
    return x * (1 + 0.1 * torch.randn(1))


base = TensorDataset(torch.randn(90, 4), torch.randn(90, 1))
train_part, val_part = random_split(base, [70, 20])
train_loader = DataLoader(Transformed(train_part, jitter), batch_size=14, shuffle=True)
val_loader = DataLoader(val_part, batch_size=20)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(2):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for x, y in val_loader:
            print(nn.functional.mse_loss(model(x), y).item())
