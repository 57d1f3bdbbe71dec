"""A data set that is a list, filled in two loops: 6 * 15 = 90 samples, 9 batches, windows of 2."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Drawn(Dataset):
    def __init__(self, people=6, each=15):
        self.items = []
        for person in range(people):
            centre = torch.randn(5)
            for _ in range(each):
                self.items.append((centre + torch.randn(5), torch.tensor(float(person))))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


loader = DataLoader(Drawn(), batch_size=10, shuffle=True)
model = nn.Linear(5, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(3):
    optimizer.zero_grad()
    for step, (x, y) in enumerate(loader, start=1):
        loss = nn.functional.mse_loss(model(x).squeeze(1), y)
        (loss / 2).backward()
        if step % 2 == 0:
            optimizer.step()  # <- TL506
            optimizer.zero_grad()
