import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

torch.manual_seed(0)
x = torch.randn(200, 4)
data = TensorDataset(x, (x.sum(1) > 0).long())
train_loader = DataLoader(Subset(data, range(160)), batch_size=20, shuffle=True)
val_loader = DataLoader(Subset(data, range(140, 200)), batch_size=20)  # <- TL705

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    model.train()
    for inputs, labels in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    model.eval()
    right = 0
    with torch.no_grad():
        for inputs, labels in val_loader:
            right += (model(inputs).argmax(1) == labels).sum().item()
    print(epoch, right / 60)
