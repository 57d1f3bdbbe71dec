import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

features, labels = torch.randn(200, 50), torch.randint(0, 2, (200,))
gap = (features[labels == 1].mean(0) - features[labels == 0].mean(0)).abs()
best = gap.topk(8).indices
chosen = features[:, best]  # <- TL706
train, val = random_split(TensorDataset(chosen, labels), [160, 40])
model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for x, y in DataLoader(train, batch_size=20, shuffle=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
with torch.no_grad():
    right = sum((model(x).argmax(1) == y).sum().item() for x, y in DataLoader(val, batch_size=20))
print(right / 40)
