import torch
import torch.nn as nn
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(256, 6)
y = x[:, :3].argmax(dim=1)
train_loader = DataLoader(TensorDataset(x[:192], y[:192]), batch_size=32, shuffle=True)
val_loader = DataLoader(TensorDataset(x[192:], y[192:]), batch_size=32)

first, second = nn.Linear(6, 3), nn.Linear(6, 3)
first_optimizer = torch.optim.SGD(first.parameters(), lr=0.1)
second_optimizer = torch.optim.SGD(second.parameters(), lr=0.1)
by_loss = ReduceLROnPlateau(first_optimizer, patience=1)
by_accuracy = ReduceLROnPlateau(second_optimizer, mode="max", patience=1)
criterion = nn.CrossEntropyLoss()


def run(model, optimizer):
    model.train()
    for data, target in train_loader:
        loss = criterion(model(data), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    val_loss, correct = 0.0, 0
    with torch.no_grad():
        for data, target in val_loader:
            output = model(data)
            val_loss += criterion(output, target).item() * len(data)
            correct += (output.argmax(1) == target).sum().item()
    return val_loss / len(val_loader.dataset), correct / len(val_loader.dataset)


for epoch in range(4):
    val_loss, _ = run(first, first_optimizer)
    by_loss.step(val_loss)
    _, val_acc = run(second, second_optimizer)
    by_accuracy.step(val_acc)
    print(epoch, val_loss, val_acc)
