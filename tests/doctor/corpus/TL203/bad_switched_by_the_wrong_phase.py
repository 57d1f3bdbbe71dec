"""Recording follows the phase, but the test asks for a phase that this program does not have."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def one_pass(split, net, loader, optimizer):
    net.train(split == "fit")
    recording = split != "predict"
    summed = 0.0
    with torch.set_grad_enabled(recording):
        for x, y in loader:
            loss = nn.functional.l1_loss(net(x), y)  # <- TL203
            if split == "fit":
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            summed += loss.item()
    return summed / len(loader)


torch.manual_seed(0)
data = TensorDataset(torch.randn(96, 5), torch.randn(96, 1))
held_back = TensorDataset(torch.randn(32, 5), torch.randn(32, 1))
net = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
loaders = {"fit": DataLoader(data, 16, shuffle=True), "dev": DataLoader(held_back, 16)}
for epoch in range(3):
    for split in loaders:
        print(epoch, split, one_pass(split, net, loaders[split], optimizer))
