import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
EPOCHS = 6
dataset = TensorDataset(torch.randn(128, 4), torch.randn(128, 1))
loader = DataLoader(dataset, batch_size=16, shuffle=True)
net = nn.Linear(4, 1)
optimizer = optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
scheduler = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=EPOCHS)

for epoch in range(EPOCHS):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
    print(epoch, scheduler.get_last_lr()[0], loss.item())
    scheduler.step()
