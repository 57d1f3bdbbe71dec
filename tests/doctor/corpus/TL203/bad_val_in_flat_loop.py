import torch
import torch.nn as nn
import torch.optim as O
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(42)

# data
x = torch.randn(180, 12)
y = torch.randint(0, 5, (180,))
trainloader = DataLoader(TensorDataset(x[:140], y[:140]), batch_size=20, shuffle=True)
valloader = DataLoader(TensorDataset(x[140:], y[140:]), batch_size=20)

# model
net = nn.Sequential(nn.Linear(12, 40), nn.ReLU(inplace=True), nn.Dropout(0.2), nn.Linear(40, 5))
criterion = nn.CrossEntropyLoss()
optimizer = O.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)

for epoch in range(2):
    net.train()
    for i, (inputs, labels) in enumerate(trainloader, 0):
        optimizer.zero_grad()
        outputs = net(inputs)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()

    net.eval()
    val_loss, correct, total = 0.0, 0, 0
    for inputs, labels in valloader:
        outputs = net(inputs)  # <- TL203
        val_loss += criterion(outputs, labels).item() * labels.size(0)
        correct += (outputs.argmax(1) == labels).sum().item()
        total += labels.size(0)
    print("epoch %d: val loss %.3f, val acc %.3f" % (epoch + 1, val_loss / total, correct / total))
