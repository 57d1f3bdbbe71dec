import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(256, 6)
y = (x**2).sum(dim=1, keepdim=True)
train_loader = DataLoader(TensorDataset(x[:192], y[:192]), batch_size=32, shuffle=True)
valid_loader = DataLoader(TensorDataset(x[192:], y[192:]), batch_size=32)

model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(
    optimizer, mode="max", factor=0.1, patience=2
)

for epoch in range(8):
    model.train()
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()

    model.eval()
    val_loss = 0.0
    with torch.no_grad():
        for inputs, targets in valid_loader:
            val_loss += criterion(model(inputs), targets).item() * len(inputs)
    val_loss /= len(valid_loader.dataset)
    scheduler.step(val_loss)  # <- TL604
    print(epoch, val_loss)
