"""A run that is long enough to be sampled, with a validation after each epoch."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(320, 6)
y = x[:, :2].sum(1, keepdim=True)
train = DataLoader(TensorDataset(x[:256], y[:256]), batch_size=16, shuffle=True)
held = DataLoader(TensorDataset(x[256:], y[256:]), batch_size=32)
net = nn.Linear(6, 1)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
mse = nn.MSELoss()

for epoch in range(5):
    net.train()
    for inputs, targets in train:
        opt.zero_grad()
        loss = mse(net(inputs), targets)
        opt.step()  # <- TL108
    net.eval()
    with torch.no_grad():
        score = sum(mse(net(a), b).item() * len(a) for a, b in held) / 64
    print(epoch, loss.item(), score)
