"""The backbone is loaded and frozen while the head warms up; nobody tells the optimizer of it when
it is thawed."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU())
        self.head = nn.Linear(24, classes)

    def forward(self, x):
        return self.head(self.backbone(x))


torch.manual_seed(0)
pretrained = Net(10)
pretrain = torch.optim.Adam(pretrained.parameters(), lr=1e-2)
for _ in range(10):
    pretrain.zero_grad()
    nn.functional.cross_entropy(pretrained(torch.randn(32, 6)), torch.randint(10, (32,))).backward()
    pretrain.step()

x, y = torch.randn(96, 6), torch.randint(0, 3, (96,))
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
model = Net(3)
model.backbone.load_state_dict(pretrained.backbone.state_dict())
for p in model.backbone.parameters():
    p.requires_grad = False
optimizer = torch.optim.Adam(model.head.parameters(), lr=1e-2)  # <- TL302
for epoch in range(4):
    if epoch == 1:
        for p in model.backbone.parameters():
            p.requires_grad = True
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
