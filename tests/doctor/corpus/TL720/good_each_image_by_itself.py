"""The error of each image is added up: divided by their number, it is the mean over images."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)
x = torch.randn(90, 3, 8, 8)
noisy = x + 0.3 * torch.randn_like(x)
train = DataLoader(TensorDataset(noisy[:60], x[:60]), batch_size=8, shuffle=True)
held_out = TensorDataset(noisy[60:], x[60:])
val = DataLoader(held_out, batch_size=8)
net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 3, 3, padding=1))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)


@torch.no_grad()
def validate():
    net.eval()
    total = 0.0
    for image, clean in val:
        restored = net(image)
        for index in range(len(image)):
            total += nn.functional.mse_loss(restored[index], clean[index]).item()
    return total / len(held_out)


for epoch in range(3):
    net.train()
    for image, clean in train:
        optimizer.zero_grad()
        nn.functional.mse_loss(net(image), clean).backward()
        optimizer.step()
    print(epoch, f"{validate():.4f}")
