import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
train_set = TensorDataset(torch.randn(40, 3), torch.randn(40, 1))
train_loader = DataLoader(train_set, batch_size=10, shuffle=True)
net, criterion = nn.Linear(3, 1), nn.MSELoss()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(3):
    running = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        optimizer.step()
        running += loss.item()
    print(epoch, running / len(train_set))  # <- TL720
