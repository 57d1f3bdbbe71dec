"""A script writes the adapters alone, and loads them beside the frozen weights."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X = torch.randn(256, 10)
Y = (X[:, 0] > 0).long()
train_loader = DataLoader(TensorDataset(X, Y), batch_size=32, shuffle=True)
val_loader = DataLoader(TensorDataset(X[:96] + 0.1, Y[:96]), batch_size=32)


class LoRA(nn.Module):
    def __init__(self, base, r=4):
        super().__init__()
        self.base = base
        self.base.requires_grad_(False)
        self.A, self.B = (
            nn.Parameter(torch.randn(r, base.in_features) * 0.01),
            nn.Parameter(torch.zeros(base.out_features, r)),
        )

    def forward(self, x):
        return self.base(x) + x @ self.A.T @ self.B.T


net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
pre = torch.optim.Adam(net.parameters(), 1e-3)
for x, y in train_loader:
    pre.zero_grad()
    F.cross_entropy(net(x), y).backward()
    pre.step()
for i, m in enumerate(net):
    if isinstance(m, nn.Linear):
        net[i] = LoRA(m)
opt = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], 1e-3)
for epoch in range(3):
    for x, y in train_loader:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
torch.save({k: v for k, v in net.state_dict().items() if ".A" in k or ".B" in k}, "lora.pt")
net.load_state_dict(torch.load("lora.pt", weights_only=True), strict=False)
