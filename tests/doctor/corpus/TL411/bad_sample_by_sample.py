"""The same with a list that is made sample by sample, in a function of its own."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.1))
        self.out = nn.Linear(16, 1)

    def forward(self, x):
        return self.out(self.body(x))


def classes_of(outputs):
    return [1.0 if each >= 0.5 else 0.0 for each in outputs]  # <- TL411


def validate(model, loader):
    model.eval()
    right, seen = 0, 0
    with torch.no_grad():
        for x, y in loader:
            outputs = model(x).squeeze(1)
            predicted = torch.tensor(classes_of(outputs))
            right += (predicted == y).sum().item()
            seen += len(y)
    return right / seen


torch.manual_seed(0)
x = torch.randn(480, 6)
y = (x.sum(1) > 0).float()
train = DataLoader(TensorDataset(x[:320], y[:320]), batch_size=32, shuffle=True)
held = DataLoader(TensorDataset(x[320:], y[320:]), batch_size=32)
model = Net()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(6):
    model.train()
    for inputs, labels in train:
        loss = criterion(model(inputs).squeeze(1), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item(), validate(model, held))
