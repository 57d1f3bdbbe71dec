import torch
from lightning import Fabric
from torch import nn

fabric = Fabric()
model = nn.Sequential(nn.Linear(10, 30), nn.Dropout(0.5), nn.Linear(30, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = fabric.setup(model, optimizer)
train = torch.utils.data.TensorDataset(torch.randn(320, 10), torch.randint(0, 3, (320,)))
valid = torch.utils.data.TensorDataset(torch.randn(96, 10), torch.randint(0, 3, (96,)))
train_loader, val_loader = fabric.setup_dataloaders(
    torch.utils.data.DataLoader(train, batch_size=32, shuffle=True),
    torch.utils.data.DataLoader(valid, batch_size=32),
)
model.train()
for epoch in range(4):
    for x, y in train_loader:
        optimizer.zero_grad()
        fabric.backward(nn.functional.cross_entropy(model(x), y))  # <- TL201
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in val_loader)
    fabric.print(epoch, right / len(valid))
