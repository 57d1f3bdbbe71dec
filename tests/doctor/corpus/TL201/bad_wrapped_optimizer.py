"""An optimizer of the user's wraps another and takes over its parameters."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class SlowWeights(torch.optim.Optimizer):
    def __init__(self, inner, every=5):
        self.inner, self.every, self.count = inner, every, 0
        self.param_groups, self.defaults = inner.param_groups, inner.defaults
        self.slow = [[p.detach().clone() for p in g["params"]] for g in inner.param_groups]

    @torch.no_grad()
    def step(self, closure=None):
        loss = self.inner.step(closure)
        self.count += 1
        if self.count % self.every == 0:
            for group, slow in zip(self.inner.param_groups, self.slow, strict=True):
                for fast, kept in zip(group["params"], slow, strict=True):
                    kept.add_(fast - kept, alpha=0.5)
                    fast.copy_(kept)
        return loss

    def zero_grad(self, set_to_none=True):
        self.inner.zero_grad(set_to_none)


rows = TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,)))
train, held = DataLoader(rows, batch_size=8, shuffle=True), DataLoader(rows, batch_size=32)
net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2))
optimizer = SlowWeights(torch.optim.SGD(net.parameters(), lr=0.1))
scaler = torch.amp.GradScaler("cuda", enabled=torch.cuda.is_available())
for _ in range(3):
    for inputs, targets in train:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(inputs), targets)  # <- TL201
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    net.eval()
    with torch.no_grad():
        right = sum((net(inputs).argmax(1) == targets).sum().item() for inputs, targets in held)
    print(right / 64)
