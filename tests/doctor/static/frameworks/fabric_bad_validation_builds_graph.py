import torch
from lightning.fabric import Fabric
from torch import nn

fabric = Fabric()
net = nn.Sequential(nn.Linear(6, 20), nn.Dropout(0.2), nn.Linear(20, 1))
optimizer = torch.optim.Adam(net.parameters())
net, optimizer = fabric.setup(net, optimizer)
train_loader = fabric.setup_dataloaders(
    torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(torch.randn(64, 6), torch.randn(64, 1)), 8, shuffle=True
    )
)
val_loader = fabric.setup_dataloaders(
    torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(torch.randn(64, 6), torch.randn(64, 1)), 8
    )
)
for epoch in range(3):
    net.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        fabric.backward(nn.functional.mse_loss(net(x), y))
        optimizer.step()
    net.eval()
    worst = 0.0
    for x, y in val_loader:
        worst = max(worst, (net(x) - y).abs().max().item())  # <- TL203
    fabric.print(worst)
