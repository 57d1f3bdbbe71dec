"""Groups of micro-batches of a loader, the last one smaller; their mean losses are added up."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Grouped:
    def __init__(self, loader, size):
        self.loader, self.size = loader, size

    def __iter__(self):
        group = []
        for batch in self.loader:
            group.append(batch)
            if len(group) == self.size:
                yield group
                group = []
        if group:
            yield group


torch.manual_seed(0)
x = torch.randn(240, 6)
loader = DataLoader(TensorDataset(x, (x[:, 0] > 0).long()), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
criterion = nn.CrossEntropyLoss()
for epoch in range(4):
    for group in Grouped(loader, 4):
        optimizer.zero_grad()
        for inputs, targets in group:
            loss = criterion(model(inputs), targets)
            loss.backward()  # <- TL505
        optimizer.step()
    print(epoch, loss.item())
