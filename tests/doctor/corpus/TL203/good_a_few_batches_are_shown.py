"""The predictions of two batches are printed while the network trains; then the loop ends."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def show(net, val_loader):
    net.eval()
    for number, (inputs, targets) in enumerate(val_loader):
        print(net(inputs).argmax(1).tolist(), targets.tolist())
        if number == 1:
            break


torch.manual_seed(0)
data = TensorDataset(torch.randn(32, 4), torch.randint(0, 2, (32,)))
val_loader = DataLoader(TensorDataset(torch.randn(16, 4), torch.randint(0, 2, (16,))), batch_size=4)
net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.Linear(8, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net.train()
for inputs, targets in DataLoader(data, batch_size=8, shuffle=True):
    optimizer.zero_grad()
    F.cross_entropy(net(inputs), targets).backward()
    optimizer.step()
show(net, val_loader)
