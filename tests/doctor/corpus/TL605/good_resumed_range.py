"""The range starts where the last run stopped; its length is the schedule's."""

import torch
import torch.nn as nn

torch.manual_seed(0)
torch.set_num_threads(1)

start_epoch = 0
loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(torch.randn(64, 3), torch.randn(64, 1)),
    batch_size=16,
    shuffle=True,
)
net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)
criterion = nn.MSELoss()


def train(epoch):
    net.train()
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = criterion(net(inputs), targets)
        loss.backward()
        optimizer.step()
    return loss.item()


for epoch in range(start_epoch, start_epoch + 20):
    print(epoch, train(epoch))
    scheduler.step()
