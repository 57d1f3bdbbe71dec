import os
import tempfile

import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,))), 16, shuffle=True)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

for epoch in range(2):
    for inputs, labels in loader:
        optimizer.zero_grad()
        outputs = net(inputs)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()

PATH = os.path.join(tempfile.mkdtemp(), "net.pth")
torch.save(net, PATH)  # <- TL803
print("Finished Training")
os.remove(PATH)
os.rmdir(os.path.dirname(PATH))
