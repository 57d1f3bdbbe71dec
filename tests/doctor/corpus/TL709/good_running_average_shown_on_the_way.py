"""A meter without weights is only shown while the batches go by; the result is counted in samples."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class AverageMeter:
    def __init__(self):
        self.sum = self.count = self.avg = 0

    def update(self, val, n=1):
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


def validate(net, batches):
    shown, right, seen = AverageMeter(), 0, 0
    net.eval()
    with torch.no_grad():
        for step, (x, y) in enumerate(batches):
            hits = net(x).argmax(1) == y
            shown.update(hits.float().mean().item())
            if step % 2 == 0:
                print(step, shown.avg)
            right += hits.sum().item()
            seen += len(y)
    return right / seen


torch.manual_seed(0)
x = torch.randn(220, 3)
y = (x.sum(1) > 0).long()
train = DataLoader(TensorDataset(x[:160], y[:160]), batch_size=32, shuffle=True)
held = DataLoader(TensorDataset(x[160:], y[160:]), batch_size=25)
net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for epoch in range(2):
    net.train()
    for a, b in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(a), b).backward()
        optimizer.step()
    print(epoch, validate(net, held))
