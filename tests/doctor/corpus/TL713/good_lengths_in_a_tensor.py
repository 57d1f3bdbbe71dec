"""The lengths of the parts are computed as a tensor."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(0)
data = TensorDataset(torch.randn(40, 3), torch.randn(40, 1))
shares = torch.as_tensor([80, 20])
lengths = len(data) * shares // shares.sum()
lengths[0] += len(data) - lengths.sum()
train_set, val_set = random_split(data, lengths)
net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for inputs, targets in DataLoader(train_set, batch_size=8, shuffle=True):
    optimizer.zero_grad()
    nn.functional.mse_loss(net(inputs), targets).backward()
    optimizer.step()
