"""Recording follows the phase; one more pass records because its caller says so."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def one_pass(phase, net, loader, optimizer, record=None):
    training = phase == "train"
    if record is None:
        record = training
    net.train(training)
    summed = 0.0
    with torch.set_grad_enabled(record):
        for x, y in loader:
            loss = nn.functional.mse_loss(net(x), y)
            if training:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            summed += loss.item()
    return summed / len(loader)


torch.manual_seed(0)
train_loader = DataLoader(TensorDataset(torch.randn(96, 5), torch.randn(96, 1)), 16, shuffle=True)
val_loader = DataLoader(TensorDataset(torch.randn(32, 5), torch.randn(32, 1)), 16)
net = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(2):
    for phase, loader in (("train", train_loader), ("val", val_loader)):
        print(epoch, phase, one_pass(phase, net, loader, optimizer))
with torch.set_grad_enabled(True):
    for x, y in val_loader:
        print(nn.functional.mse_loss(net(x), y).item())
