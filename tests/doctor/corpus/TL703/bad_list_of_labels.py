import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

per_class, classes = 30, 3
labels = [label for label in range(classes) for _ in range(per_class)]
rows = torch.randn(per_class * classes, 5)
data = TensorDataset(rows, torch.tensor(labels))
loader = DataLoader(data, batch_size=15)  # <- TL703
model = nn.Linear(5, classes)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
