import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
accumulation_steps = 4
dataset = TensorDataset(torch.randn(64, 6), torch.randint(0, 3, (64,)))
train_loader = DataLoader(dataset, batch_size=4, shuffle=True)
model = nn.Linear(6, 3)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

for epoch in range(2):
    optimizer.zero_grad()
    for i, (inputs, labels) in enumerate(train_loader):
        outputs = model(inputs)
        loss = criterion(outputs, labels)
        loss.backward()  # <- TL505
        if (i + 1) % accumulation_steps == 0:
            optimizer.step()
            optimizer.zero_grad()
    print(epoch, loss.item())
