"""Two-phase fine-tuning: the head first, then everything."""

import torch
import torch.nn as nn
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(192, 8)
y = x[:, :3].argmax(dim=1)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)

backbone = nn.Sequential(nn.Linear(8, 32), nn.ReLU())
head = nn.Linear(32, 3)
model = nn.Sequential(backbone, head)
criterion = nn.CrossEntropyLoss()
EPOCHS = 6


def train_one_epoch(optimizer):
    model.train()
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
    return loss.item()


optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scheduler = CosineAnnealingLR(optimizer, T_max=EPOCHS)  # <- TL607
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

for epoch in range(EPOCHS):
    loss = train_one_epoch(optimizer)
    scheduler.step()
    print(epoch, loss, optimizer.param_groups[0]["lr"])
