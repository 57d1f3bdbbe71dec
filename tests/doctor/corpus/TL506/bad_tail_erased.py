import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
ACCUM = 4
train_set = TensorDataset(torch.randn(100, 6), torch.randint(0, 3, (100,)))
loader = DataLoader(train_set, batch_size=10, shuffle=True)
model = nn.Linear(6, 3)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for epoch in range(3):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y) / ACCUM
        loss.backward()
        if (i + 1) % ACCUM == 0:
            optimizer.step()  # <- TL506
            optimizer.zero_grad()
    print(epoch, loss.item())
