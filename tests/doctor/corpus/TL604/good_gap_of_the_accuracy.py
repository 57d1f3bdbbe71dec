import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import ReduceLROnPlateau

torch.manual_seed(4)
x = torch.randn(240, 5)
y = (x @ torch.randn(5, 3)).argmax(1)
net = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
schedules = {
    "accuracy_gap": ReduceLROnPlateau(optimizer, mode="min", factor=0.5, patience=1),
}


@torch.no_grad()
def readings():
    net.eval()
    accuracy = (net(x[160:]).argmax(1) == y[160:]).float().mean().item()
    return {"accuracy_gap": 1.0 - accuracy}


for epoch in range(6):
    net.train()
    for rows in torch.randperm(160).split(16):
        optimizer.zero_grad()
        F.cross_entropy(net(x[rows]), y[rows]).backward()
        optimizer.step()
    found = readings()
    for name, schedule in schedules.items():
        schedule.step(found[name])
