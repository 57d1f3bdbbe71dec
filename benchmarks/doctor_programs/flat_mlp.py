"""A flat script: one loop, dropout, running loss."""

import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(96, 8)
y = (x.sum(dim=1) > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)

net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 2))
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

for epoch in range(3):
    running_loss = 0.0
    correct = 0
    for i, data in enumerate(loader):
        inputs, labels = data

        # zero the parameter gradients
        optimizer.zero_grad()

        # forward + backward + optimize
        outputs = net(inputs)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()

        # statistics
        running_loss += loss.item()
        correct += (outputs.argmax(dim=1) == labels).sum().item()
        if i % 3 == 2:
            print(f"[{epoch + 1}, {i + 1}] loss: {running_loss / 3:.4f}")
            running_loss = 0.0
    print("accuracy", correct / len(x))

print("Finished Training")
