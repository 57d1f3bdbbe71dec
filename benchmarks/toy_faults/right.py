import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(256, 8)
targets = (inputs[:, 0] > 0).long()
train = DataLoader(TensorDataset(inputs[:192], targets[:192]), batch_size=32, shuffle=True)
val = DataLoader(TensorDataset(inputs[192:], targets[192:]), batch_size=64)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(3):
    model.train()
    for batch, labels in train:
        optimizer.zero_grad()
        loss = criterion(model(batch), labels)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum((model(batch).argmax(1) == labels).sum().item() for batch, labels in val)
    print(epoch, right / 64)
